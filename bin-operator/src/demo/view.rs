//! Live progress per host: one line each on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;
use wmco_core::instances::Called;

use crate::progress::{ProgressEvent, ProgressKind, Stage};

/// Shortest time between two drawings of the same screen.
const REDRAW: Duration = Duration::from_millis(100);

/// What a person sees.
pub(super) struct View {
    events: broadcast::Receiver<ProgressEvent>,
    rows: BTreeMap<String, Row>,
    begun: Instant,
    drawn: Option<Instant>,
    output: Output,
    changes: usize,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Output {
    Screen,
    Lines,
    None,
}

#[derive(Default)]
struct Row {
    text: String,
    bytes: Option<(u64, u64)>,
    stage: Option<Stage>,
    elapsed: Duration,
}

impl View {
    pub(super) fn new(
        events: broadcast::Receiver<ProgressEvent>,
        addresses: impl Iterator<Item = String>,
    ) -> Self {
        let output = if std::io::stdout().is_terminal() { Output::Screen } else { Output::Lines };
        Self::with(events, addresses, output)
    }

    /// A view that shows nothing.
    pub(super) fn quiet(
        events: broadcast::Receiver<ProgressEvent>,
        addresses: impl Iterator<Item = String>,
    ) -> Self {
        Self::with(events, addresses, Output::None)
    }

    fn with(
        events: broadcast::Receiver<ProgressEvent>,
        addresses: impl Iterator<Item = String>,
        output: Output,
    ) -> Self {
        let rows = addresses.map(|address| (address, Row::default())).collect();
        Self { events, rows, begun: Instant::now(), drawn: None, output, changes: 0 }
    }

    /// Steps seen that were more than a look.
    pub(super) const fn changes(&self) -> usize {
        self.changes
    }

    /// Shows what happens until `enough` hosts rest at `stage`; `false` when patience ends first, or
    /// `stop` is asked for.
    pub(super) async fn until_all(
        &mut self,
        stage: Stage,
        enough: usize,
        patience: Duration,
        stop: &CancellationToken,
    ) -> bool {
        let resting = |view: &Self| {
            view.rows.values().filter(|row| row.stage == Some(stage)).count() >= enough
        };
        let waiting = async {
            while !resting(self) {
                match self.events.recv().await {
                    Ok(event) => self.take(event),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return false,
                }
            }
            true
        };
        let done = tokio::select! {
            done = waiting => done,
            () = tokio::time::sleep(patience) => false,
            () = stop.cancelled() => false,
        };
        if self.output == Output::Screen {
            self.draw();
        }
        done
    }

    fn take(&mut self, event: ProgressEvent) {
        let elapsed = self.begun.elapsed();
        let row = self.rows.entry(event.address.clone()).or_default();
        row.elapsed = elapsed;
        let mut line = true;
        match event.kind {
            ProgressKind::Step { action, because } => {
                self.changes += usize::from(action != "probe");
                row.stage = None;
                row.bytes = None;
                row.text = format!("{action} ({because})");
            }
            ProgressKind::HostStep(step) => row.text = format!("on the host: {step}"),
            ProgressKind::Upload(progress) => {
                row.bytes = Some((progress.done, progress.total));
                line = progress.done == progress.total;
            }
            ProgressKind::Stage(stage) => {
                row.stage = Some(stage);
                row.bytes = None;
                row.text = match stage {
                    Stage::Awaits(what) => format!("awaits {what}"),
                    Stage::Settled => "settled".to_owned(),
                    Stage::Gone => "removed".to_owned(),
                };
            }
            ProgressKind::Failed { error, retry_at } => {
                row.text = format!("failed: {error}; next attempt {retry_at:.0}");
            }
        }
        match self.output {
            Output::Lines if line => self.line(&event.address),
            Output::Screen if self.drawn.is_none_or(|at| at.elapsed() >= REDRAW) => self.draw(),
            Output::Lines | Output::Screen | Output::None => {}
        }
    }

    fn line(&self, address: &str) {
        if let Some(row) = self.rows.get(address) {
            super::println_line(&format!("{:<24}{row}", Called(address).to_string()));
        }
    }

    /// Draws all rows over those drawn before.
    fn draw(&mut self) {
        let mut screen = String::new();
        if self.drawn.is_some() {
            let _ = write!(screen, "\x1b[{}A", self.rows.len());
        }
        for (address, row) in &self.rows {
            let text: String = row.to_string().chars().take(100).collect();
            let _ = writeln!(screen, "\x1b[2K{:<24}{text}", Called(address).to_string());
        }
        let mut out = std::io::stdout().lock();
        // A screen that is gone does not end the demo.
        let _ = out.write_all(screen.as_bytes()).and_then(|()| out.flush());
        self.drawn = Some(Instant::now());
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>6.1}s  {}", self.elapsed.as_secs_f64(), self.text)?;
        if let Some((done, total)) = self.bytes {
            write!(f, "  {} of {} KiB", done.div_ceil(1024), total.div_ceil(1024))?;
        }
        Ok(())
    }
}
