mod against_model;
mod examples;
mod model;
mod numbers;
