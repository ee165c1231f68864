//! No answer of a tool fills a model's context by itself.

use llm::Content;
use proptest::prelude::*;
use tools::*;

use crate::support::{app_with, fake, run};

async fn limited(content: Vec<Content>) -> Vec<Content> {
    let big = fake("big", Concurrency::Alone, move |_| {
        let content = content.clone();
        async move { ToolOutput { content, ..ToolOutput::error("failed", "") } }
    });
    let app = app_with([big]);
    let output = run(&app, "big", "{}").await;
    assert_eq!(output.error.as_deref(), Some("failed"), "the rest of it stays");
    app.close().await.unwrap();
    output.content
}

#[tokio::test]
async fn what_fits_is_left_alone() {
    let whole = vec![Content::text("é".repeat(OUTPUT_LIMIT / 2))];
    assert_eq!(limited(whole.clone()).await, whole);
    let parts = vec![Content::text("a".repeat(OUTPUT_LIMIT - 1)), Content::text("b")];
    assert_eq!(limited(parts.clone()).await, parts);
}

#[tokio::test]
async fn what_does_not_keeps_its_head_and_its_tail() {
    let text: String = (0..20_000).map(|n| format!("{n}é ")).collect();
    let kept = limited(vec![Content::text(&*text)]).await;
    let [Content::Text { text: kept }] = &kept[..] else { panic!("{kept:?}") };
    assert!(kept.len() <= OUTPUT_LIMIT && kept.len() > OUTPUT_LIMIT - 256, "{}", kept.len());
    let (head, rest) = kept.split_once("\n[… ").unwrap();
    let (gone, tail) = rest.split_once(" bytes left out …]\n").unwrap();
    assert!(text.starts_with(head) && text.ends_with(tail));
    assert!(head.len() > 2 * tail.len() && tail.len() > OUTPUT_LIMIT / 5, "{} and {}", head.len(), tail.len());
    assert_eq!(head.len() + gone.parse::<usize>().unwrap() + tail.len(), text.len());
}

#[tokio::test]
async fn the_parts_of_an_answer_share_one_limit() {
    let half = OUTPUT_LIMIT / 2;
    let image = Content::Image { media_type: "image/png".into(), data: "x".into() };
    let parts = vec![
        Content::text("a".repeat(half)),
        image.clone(),
        Content::text("b".repeat(OUTPUT_LIMIT)),
        Content::text("c".repeat(OUTPUT_LIMIT)),
    ];
    let kept = limited(parts.clone()).await;
    assert_eq!(kept[..2], parts[..2]);
    let second = kept[2].as_text().unwrap();
    assert!(second.len() <= half && second.starts_with("bbb") && second.ends_with("bbb"), "{}", second.len());
    let sum: usize = kept.iter().filter_map(Content::as_text).map(str::len).sum();
    assert!(sum <= OUTPUT_LIMIT + 256, "{sum}");
}

#[tokio::test]
async fn many_small_parts_do_not_slip_through() {
    let kept = limited(vec![Content::text("x".repeat(100)); 10_000]).await;
    let sum: usize = kept.iter().filter_map(Content::as_text).map(str::len).sum();
    assert!(sum <= OUTPUT_LIMIT + 256, "{sum}");
    let last = kept.last().unwrap().as_text().unwrap();
    let left_out = 10_000 * 100 - (sum - last.len());
    assert_eq!(last, format!("\n[… {left_out} bytes left out …]\n"));
}

proptest! {
    #[test]
    fn a_cut_is_short_honest_and_on_character_boundaries(
        piece in "[a-z]{1,3}|é|€|𝄞|\n",
        times in 0_usize..2_000,
        limit in 64_usize..2_000,
    ) {
        let text = piece.repeat(times);
        let cut = limit_text(&text, limit);
        prop_assert!(cut.len() <= limit.max(text.len().min(limit)), "{} of {}", cut.len(), limit);
        if text.len() <= limit {
            prop_assert_eq!(cut, text);
        } else {
            let (head, rest) = cut.split_once("\n[… ").unwrap();
            let (gone, tail) = rest.split_once(" bytes left out …]\n").unwrap();
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert_eq!(head.len() + gone.parse::<usize>().unwrap() + tail.len(), text.len());
        }
    }
}
