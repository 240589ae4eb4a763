mod against_model;
mod examples;
mod guest;
mod hart;
mod machine;
mod views;
mod windows;
