//! The project's own figures.
