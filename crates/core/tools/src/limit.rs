//! No answer of a tool fills a model's context by itself.

use llm::Content;

use crate::ToolOutput;

/// The most bytes of text that one call may answer with. What is longer keeps its head and its tail.
pub const OUTPUT_LIMIT: usize = 48 * 1024;

/// Cuts the middle out of a text that is longer than `limit` bytes, on character boundaries, and says how much is gone.
///
/// ```
/// let text = "a".repeat(600) + &"b".repeat(600);
/// let cut = tools::limit_text(&text, 1_000);
/// assert!(cut.len() <= 1_000 && cut.starts_with("aaa") && cut.ends_with("bbb") && cut.contains("bytes left out"));
/// ```
pub fn limit_text(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let room = limit.saturating_sub(64);
    let head = text.floor_char_boundary(room / 4 * 3);
    let tail = text.ceil_char_boundary(text.len() - room / 4);
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}

/// The parts of an answer share one limit: behind the part that reaches it, text is left out.
pub(crate) fn limit_output(output: &mut ToolOutput) {
    let (mut left, mut gone) = (OUTPUT_LIMIT, 0);
    output.content.retain_mut(|part| {
        let Content::Text { text } = part else { return true };
        if left == 0 {
            gone += text.len();
            return false;
        }
        if text.len() > left {
            *text = limit_text(text, left.max(128)).into();
        }
        left = left.saturating_sub(text.len());
        true
    });
    if gone > 0 {
        output.content.push(Content::text(format!("\n[… {gone} bytes left out …]\n")));
    }
}
