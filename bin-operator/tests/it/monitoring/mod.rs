//! Rules and dashboard, checked with Prometheus' own tool and against the metrics that there are.

mod alerts;
mod dashboard;
mod names;
mod promtool;
mod recording;
