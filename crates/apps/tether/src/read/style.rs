//! How text is styled on a terminal. Elsewhere the styles are taken out again.

use anstyle::{AnsiColor, Style};

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();
pub(super) const NOTABLE: Style = AnsiColor::Yellow.on_default();
