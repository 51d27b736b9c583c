//! Conversations as transformers writes them, and templates that want too much.

use super::*;
use regard_models::ModelFiles;
use serde_json::json;
use std::time::{Duration, Instant, UNIX_EPOCH};

fn tokenizer(tokens: &serde_json::Value) -> Tokenizer {
    let whole =
        json!({"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}});
    let config = tokens.as_object().unwrap().clone();
    Tokenizer::new(whole.to_string().as_bytes(), config).unwrap()
}

fn template(source: &str) -> Result<ChatTemplate> {
    ChatTemplate::new(source, "test", &tokenizer(&json!({})))
}

fn render(source: &str) -> Result<String> {
    let messages = [Message::new("user", "hello")];
    template(source)?.render(&messages, RenderOptions::default())
}

fn fails(source: &str, words: &[&str]) {
    let start = Instant::now();
    let error = render(source).unwrap_err().to_string();
    for word in words {
        assert!(error.contains(word), "{error:?} lacks {word:?}");
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{source}: {:?}", start.elapsed());
}

#[test]
fn texts_are_those_of_transformers() {
    let goldens = include_str!("../../../../../fixtures/chat_templates.json");
    let goldens: serde_json::Value = serde_json::from_str(goldens).unwrap();
    let now = UNIX_EPOCH + Duration::from_secs(goldens["now"].as_u64().unwrap());
    let cases = goldens["cases"].as_array().unwrap();
    let mut rendered = 0;
    for case in cases {
        let [name, talk] = [0, 1].map(|at| case["name"][at].as_str().unwrap());
        let source = goldens["templates"][name].as_str().unwrap();
        let messages: Vec<(String, String)> =
            serde_json::from_value(goldens["conversations"][talk].clone()).unwrap();
        let messages: Vec<Message> =
            messages.into_iter().map(|(role, content)| Message { role, content }).collect();
        let template = ChatTemplate::new(source, name, &tokenizer(&case["tokens"])).unwrap();
        let options = RenderOptions { add_generation_prompt: case["add"].as_bool().unwrap(), now };
        let got = template.render(&messages, options);
        match (case["text"].as_str(), case["error"].as_str()) {
            (Some(want), _) => {
                let got = got.unwrap_or_else(|e| panic!("{}: {e}", case["name"]));
                for (got, want) in got.lines().zip(want.lines()) {
                    assert_eq!(got, want, "{}", case["name"]);
                }
                assert_eq!(got, want, "{}", case["name"]);
                rendered += 1;
            }
            (None, Some(why)) => {
                let error = got.unwrap_err().to_string();
                let undefined = why.contains("undefined") && error.contains("undefined");
                assert!(undefined || error.contains(why), "{}: {error}", case["name"]);
            }
            _ => unreachable!(),
        }
    }
    assert!(rendered > 150, "{rendered}");
}

#[test]
fn what_grows_without_an_end_is_an_error() {
    let doubled = "{% set a = a ~ a %}";
    let text = |body: &str| format!("{{% set a = 'abcdefgh' %}}{}", body.repeat(80));
    fails(&text(doubled), &["64 MB", "double"]);
    fails(&text("{% set a = a + a %}"), &["64 MB"]);
    fails(&text("{% set a = a * 9 %}"), &["64 MB"]);
    fails(&text("{% set a = [a, a] %}"), &["64 MB"]);
    fails(&text("{% set a = {'b': a, 'c': a} %}"), &["64 MB"]);
    fails(&text("{% set a = (a, a) %}"), &["64 MB"]);
    fails(&text("{% set a = a.replace('a', a) %}"), &["64 MB"]);
    fails(&text("{% set a = a|replace('', a) %}"), &["64 MB"]);
    fails(&text("{% set a %}{{ a }}{{ a }}{% endset %}"), &["64 MB"]);
    fails(&text("{% set a = a.join(a) %}"), &["64 MB"]);
    fails(&text("{% set a = [a, a]|join(a) %}"), &["64 MB"]);
    fails(&text("{% set a = [a] %}"), &["nest"]);
    fails(&text("{% set a = a|indent(256, true, true)|replace(' ', '\n')  %}"), &["64 MB"]);
    fails(&text("{% set a = [a, a]|tojson %}"), &["64 MB"]);
    fails(&text("{% set a = a|map('replace', 'a', 'aaaaaaaaaaaaaa')|join %}"), &["64 MB"]);
    fails(&text("{% set a = dict(b=a, c=a) %}"), &["64 MB"]);
    fails(&format!("{{% for i in range(99999) %}}{}{{% endfor %}}", "x".repeat(9999)), &["64 MB"]);
    fails(
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        &["steps", "loop forever"],
    );
    fails("{% for i in range(999999) %}{% endfor %}", &["range"]);
    fails("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", &["without an end"]);
    fails("{% for m in [1] recursive %}{{ loop([1]) }}{% endfor %}", &["without an end"]);
    fails("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", &["namespace"]);
    fails("{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}", &["namespace"]);
    // A loop holds what it goes through, and what it was told to compare.
    let looped = |body: &str| {
        format!("{{% set ns = namespace() %}}{{% for x in [ns] %}}{body}{{% endfor %}}")
    };
    fails(&looped("{% set ns.l = loop %}"), &["a loop"]);
    fails(&looped("{% set ns.l = [{'a': loop}] %}"), &["a loop"]);
    fails(&looped("{% set other = namespace(l=loop) %}"), &["a loop"]);
    fails(&looped("{{ loop.changed(ns) }}"), &["loop.changed", "a namespace"]);
    fails(&looped("{{ loop.changed([loop]) }}"), &["loop.changed", "a loop"]);
    fails("{{ 'a' * 99999999 }}", &["constant"]);
    fails("{{ ('a' * 999) * 999 }}", &["constant"]);
    fails("{{ [['a'] * 99999999] }}", &["constant"]);
    fails(
        "{% set a = 'x' * 9 %}{% set ns = namespace(a=a) %}{% for i in range(40) %}\
         {% set ns.a = ns.a ~ ns.a %}{% endfor %}",
        &["64 MB"],
    );
    // Comparing two lists that hold themselves twice, many times over.
    fails(
        "{% set ns = namespace(a=[], b=[]) %}{% for i in range(40) %}{% set ns.a = [ns.a, ns.a] %}\
         {% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
        &["64 MB"],
    );
    fails(
        "{% set a = 'x' * 4000 %}{% set b = a * 2000 %}\
         {% for i in range(99999) %}{% if 'y' in b %}{% endif %}{% endfor %}",
        &["64 MB"],
    );
    // Looking through all keys of a map.
    let pairs: Vec<String> = (0..300).map(|i| format!("'key {i}': 0")).collect();
    fails(
        &format!(
            "{{% set a = {{{}}} %}}\
             {{% for i in range(9999) %}}{{% if 'y' in a %}}{{% endif %}}{{% endfor %}}",
            pairs.join(", ")
        ),
        &["64 MB"],
    );
}

#[test]
fn values_are_those_of_jinja() {
    for (source, text) in [
        ("{{ nothing|length }} {{ messages[0].tools|count }}", "0 0"),
        ("{% for k, v in nothing|items %}x{% endfor %}.", "."),
        ("{% for k, v in {'a': 1}|items %}{{ k }}{{ v }}{% endfor %}", "a1"),
        ("{{ 'a' in {'a': nothing} }} {{ 'b' in {'a': 1} }}", "True False"),
        // Outside of namespaces a loop is a value as any other.
        (
            "{% for a in 'xy' %}{% set outer = loop %}{% for b in 'z' %}{{ outer.index }}\
             {{ loop.changed([a]) }}{% endfor %}{% endfor %}",
            "1True2True",
        ),
    ] {
        assert_eq!(render(source).unwrap(), text, "{source}");
    }
    assert!(render("{{ none|length }}").is_err() && render("{{ 3|items }}").is_err());
}

#[test]
fn lines_end_as_in_jinja() {
    let lines = "{% if true %}\n  a\n\n  {# b #}\nc{{ 'd\n' }}\n{% endif %}\n";
    let want = render(lines).unwrap();
    assert!(want.contains("a\n"), "{want:?}");
    for end in ["\r\n", "\r"] {
        assert_eq!(render(&lines.replace('\n', end)).unwrap(), want, "{end:?}");
    }
}

#[test]
fn a_template_with_deep_nesting_fits_the_stack() {
    let most = LARGEST / 16;
    let chain = format!("{{% if a %}}{}{{% endif %}}", "{% elif b %}".repeat(most));
    assert_eq!(render(&chain).unwrap(), "");
    let sum = format!("{{{{ {} }}}}", vec!["1.5"; TAG_TOKENS / 2 - 1].join("+"));
    assert_eq!(render(&sum).unwrap(), format!("{}", 1.5 * (TAG_TOKENS / 2 - 1) as f64));
    let names =
        format!("{{{{ {} }}}}", vec!["add_generation_prompt"; TAG_TOKENS / 2 - 1].join("+"));
    fails(&names, &["need two of one kind"]);
    fails(&format!("{{{{ {} }}}}", vec!["a"; TAG_TOKENS].join("~")), &["tokens"]);
    fails(&format!("{{{{ {}1{} }}}}", "[".repeat(900), "]".repeat(900)), &["recursion"]);
}

#[test]
fn errors_name_the_place() {
    fails("\n\n{{ raise_exception('need a question') }}", &["test, line 3: need a question"]);
    fails("{{ 'x'|nothing }}", &["test, line 1", "filter", "nothing"]);
    fails("{{ 'x'.nothing() }}", &["test, line 1", "nothing"]);
    fails("{{ nothing() }}", &["nothing"]);
    fails("{{ messages.x.y }}", &["undefined"]);
    fails("{% include 'x' %}", &["not supported"]);
    fails("{% block x %}{% endblock %}", &["not supported"]);
    fails("{{ range(*[1]) }}", &["not supported"]);
    fails("{% if %}", &["test, line 1: syntax error"]);
    fails(&" ".repeat(LARGEST + 1), &["131073 bytes, need at most 131072"]);
}

#[test]
fn templates_are_found_in_a_configuration() {
    let find = |value: serde_json::Value| {
        let tokenizer = tokenizer(&json!({ "chat_template": value }));
        let files = ModelFiles::from(std::path::Path::new("/nowhere"));
        ChatTemplate::of(&files, &tokenizer)
    };
    assert!(find(json!(null)).unwrap().is_none());
    assert_eq!(find(json!("one")).unwrap().unwrap().source(), "one");
    let list = json!([{"name": "tool_use", "template": "a"}, {"name": "default", "template": "b"}]);
    assert_eq!(find(list).unwrap().unwrap().source(), "b");
    let error = find(json!([{"name": "tool_use", "template": "a"}])).unwrap_err().to_string();
    assert!(error.contains("named default (tool_use)"), "{error}");
    assert!(find(json!(3)).unwrap_err().to_string().contains("need a text or a list"));
}
