mod against_model;
mod board;
mod examples;
