//! Wiring of the operator.
