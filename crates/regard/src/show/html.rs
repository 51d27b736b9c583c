//! Attention maps as a self-contained HTML page.

use super::svg::{Drawing, document, escape};

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;\
background:#fff;color:#222}\
h1{font-size:1.3rem}figure{margin:0;overflow-x:auto}.cell:hover{stroke:#222;stroke-width:2}\
output{position:sticky;bottom:0;display:block;padding:.5rem 0;min-height:1.5em;\
font-family:ui-monospace,monospace;background:inherit}\
@media(prefers-color-scheme:dark){body{background:#16161a;color:#eee}}";

/// Shows the weight under the pointer; without scripts, the browser's tooltip does.
const SCRIPT: &str = "\
const says = document.querySelector('output');\
document.querySelector('figure').addEventListener('pointerover', event => {\
const name = event.target.querySelector(':scope > title');\
if (name) says.textContent = name.textContent;\
});";

/// Returns a page with a heading, paragraphs and pictures.
pub fn html(heading: &str, about: &[String], parts: &[Drawing]) -> String {
    let heading = escape(heading);
    let about: String = about.iter().map(|line| format!("<p>{}</p>\n", escape(line))).collect();
    let pictures = document(parts);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width\"/>\n<title>{heading}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{heading}</h1>\n{about}<figure>\n{pictures}\
         </figure>\n<output></output>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::{heatmap::Map, svg::drawing};
    use super::*;

    #[test]
    fn a_page_needs_nothing_else_and_text_stays_text() {
        let words = ["</script><b>".to_string()];
        let map = Map { title: vec![], rows: &words, columns: &words, cells: &[1.0] };
        let page = html("<i>", &["a & b".into()], &[drawing(&[map])]);
        for part in ["<title>&lt;i&gt;</title>", "<p>a &amp; b</p>", "&lt;/script&gt;&lt;b&gt;"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert_eq!(page.matches("</script>").count(), 1);
        for outside in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
