//! Whether what was written as SVG or HTML can be read as such.

/// Panics unless every tag is closed in its order and every sign is written as it must be.
pub fn check_well_formed(text: &str) {
    let mut open: Vec<&str> = vec![];
    let mut rest = text.strip_prefix("<!DOCTYPE html>\n").unwrap_or(text);
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at], &open);
        let end = rest[at..].find('>').unwrap_or_else(|| panic!("an open tag: {}", &rest[at..]));
        let tag = &rest[at + 1..at + end];
        rest = &rest[at + end + 1..];
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes in <{tag}>");
        let name = |tag: &'_ str| tag.split_whitespace().next().unwrap_or("").len();
        if let Some(tag) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(tag), "</{tag}> closes another");
        } else if !tag.ends_with('/') {
            let name = &tag[..name(tag)];
            open.push(name);
            if name == "script" || name == "style" {
                // What is inside is not markup.
                rest = &rest[rest.find(&format!("</{name}>")).expect("its end")..];
            }
        }
    }
    check_text(rest, &open);
    assert!(open.is_empty(), "never closed: {open:?}");
}

fn check_text(text: &str, open: &[&str]) {
    assert!(!text.contains('>'), "in {open:?}: {text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "in {open:?}: {text:?}");
    for (at, _) in text.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;"];
        assert!(known.iter().any(|entity| text[at..].starts_with(entity)), "in {open:?}: {text}");
    }
}

#[test]
fn what_is_not_well_formed_is_seen() {
    check_well_formed("<a x=\"1\"><b/>&lt;</a>");
    for text in ["<a>", "<a></b>", "</a>", "<a x=\"1></a>", "<a>&</a>", "<a>></a>", "<a", "\u{1b}"]
    {
        assert!(std::panic::catch_unwind(|| check_well_formed(text)).is_err(), "{text}");
    }
}
