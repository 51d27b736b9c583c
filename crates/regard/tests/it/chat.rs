//! `regard chat`: turns, commands, files, and Ctrl-C.

use crate::program::{Ran, command, fails, folder, piped};
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const TEMPLATE: &str = "{% for m in messages %}\
{{ '<|im_start|>' + m.role + ' ' + m.content + '<|im_end|>' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant ' }}{% endif %}";

const WIDTH: usize = 32;
const INNER: usize = 48;

/// Writes a small Llama with random weights and this context, and returns its folder.
fn model(test: &str, context: usize, template: Option<&str>) -> String {
    let home = folder(&format!("chat-{test}"));
    let special = ["</s>", "<|im_start|>", "<|im_end|>"];
    let added = special.iter().enumerate().map(|(id, content)| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true })
    });
    let letters = ('a'..='z').map(String::from).chain(["Ġ".to_string(), "/".to_string()]);
    let all = special.iter().map(|token| token.to_string()).chain(letters);
    let vocabulary: serde_json::Map<_, _> =
        all.enumerate().map(|(id, token)| (token, json!(id))).collect();
    let words = vocabulary.len();
    let bytes = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                        "use_regex": true });
    let tokenizer = json!({
        "version": "1.0", "added_tokens": added.collect::<Vec<_>>(), "normalizer": null,
        "pre_tokenizer": bytes, "post_processor": null, "decoder": bytes,
        "model": { "type": "BPE", "vocab": vocabulary, "merges": [] },
    });
    let mut settings = json!({ "eos_token": "</s>" });
    if let Some(template) = template {
        settings["chat_template"] = template.into();
    }
    let config = json!({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": words,
        "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": context,
        "eos_token_id": 0, "tie_word_embeddings": false, "rms_norm_eps": 1e-6,
    });
    for (name, value) in [
        ("tokenizer.json", &tokenizer),
        ("tokenizer_config.json", &settings),
        ("config.json", &config),
    ] {
        fs::write(home.join(name), value.to_string()).unwrap();
    }
    let mut shapes = vec![
        ("model.embed_tokens.weight".to_string(), vec![words, WIDTH]),
        ("lm_head.weight".to_string(), vec![words, WIDTH]),
        ("model.norm.weight".to_string(), vec![WIDTH]),
    ];
    for layer in 0..2 {
        for (name, shape) in [
            ("self_attn.q_proj", vec![WIDTH, WIDTH]),
            ("self_attn.k_proj", vec![WIDTH / 2, WIDTH]),
            ("self_attn.v_proj", vec![WIDTH / 2, WIDTH]),
            ("self_attn.o_proj", vec![WIDTH, WIDTH]),
            ("mlp.gate_proj", vec![INNER, WIDTH]),
            ("mlp.up_proj", vec![INNER, WIDTH]),
            ("mlp.down_proj", vec![WIDTH, INNER]),
            ("input_layernorm", vec![WIDTH]),
            ("post_attention_layernorm", vec![WIDTH]),
        ] {
            shapes.push((format!("model.layers.{layer}.{name}.weight"), shape));
        }
    }
    let mut dice = 7_u64;
    let mut number = || {
        dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((dice >> 40) as f32 / (1 << 24) as f32 - 0.5) * 0.8
    };
    let arrays: Vec<(String, Vec<usize>, Vec<u8>)> = shapes
        .into_iter()
        .map(|(name, shape)| {
            let count = shape.iter().product();
            let values: Vec<u8> = (0..count).flat_map(|_| number().to_le_bytes()).collect();
            (name, shape, values)
        })
        .collect();
    let views = arrays.iter().map(|(name, shape, values)| {
        (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), values).unwrap())
    });
    fs::write(home.join("model.safetensors"), serialize(views, None).unwrap()).unwrap();
    home.display().to_string()
}

/// Runs it on lines of standard input.
fn talk(args: &[&str], lines: &str) -> Ran {
    let output = piped(&[&["chat"][..], args].concat(), lines.as_bytes());
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran {
        code: output.status.code().expect("an exit code"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

fn found(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn read(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_line_is_a_turn_of_one_conversation() {
    let model = model("turns", 2000, Some(TEMPLATE));
    let short = ["--model", &model, "--max-new-tokens", "9"];
    let plain = talk(&short, "hello\n\nand you\r\n");
    assert_eq!((plain.code, &*plain.err), (0, ""));
    assert_eq!(plain.out.lines().count(), 2, "{}", plain.out);
    let said = found(&talk(&[&short[..], &["--json"]].concat(), "hello\n\nand you"));
    let contents: Vec<&str> =
        said.iter().map(|said| said["message"]["content"].as_str().unwrap()).collect();
    assert_eq!(plain.out.lines().collect::<Vec<_>>(), contents);
    assert_eq!(said[0]["message"]["role"], "assistant");
    let tokens = said[0]["completion_tokens"].as_u64().unwrap();
    assert_eq!(said[0]["finish_reason"], if tokens == 9 { "length" } else { "eos" });
    // The second question comes after the first one and its answer.
    let first = said[0]["prompt_tokens"].as_u64().unwrap();
    assert!(said[1]["prompt_tokens"].as_u64().unwrap() > first + tokens, "{said:?}");
    let fresh =
        found(&talk(&[&short[..], &["--json"]].concat(), "hello\n/reset\nhello\n/undo\nhello"));
    assert!(fresh.iter().all(|again| *again == said[0]), "{fresh:?}");
    let with = [&short[..], &["--json", "--system", "be kind"]].concat();
    let system = found(&talk(&with, "hello\n/reset\nhello\n/system\n/reset\nhello"));
    assert_eq!(system[0], system[1]);
    assert!(system[0]["prompt_tokens"].as_u64().unwrap() > first);
    assert_eq!(system[2], said[0]);
    let guessed = talk(&[&short[..], &["--json", "--lookup", "4"]].concat(), "hello\nand you");
    let guessed = found(&guessed);
    assert_eq!(guessed[1]["message"], said[1]["message"]);
    let beams = talk(&[&short[..], &["--num-beams", "2"]].concat(), "hello\n");
    assert_eq!((beams.code, beams.out.lines().count()), (0, 1));
}

#[test]
fn commands_are_told_from_questions() {
    let model = model("commands", 2000, Some(TEMPLATE));
    let home = folder("chat-commands-files");
    let (file, other) = (home.join("talk.jsonl"), home.join("talk.json"));
    let name = file.display();
    let short = ["--model", &model, "--max-new-tokens", "3"];
    let lines = format!(
        "/help\nhello\n/save {name}\n//slash\n /slash\n/save {name}\n/save {}\n",
        other.display()
    );
    let ran = talk(&short, &lines);
    assert_eq!((ran.code, ran.out.lines().count()), (0, 3), "{}", ran.err);
    assert!(ran.err.contains("/undo") && ran.err.contains("saved as"), "{}", ran.err);
    let saved = read(&file);
    assert_eq!(saved.len(), 6);
    assert_eq!(saved[0], json!({ "role": "user", "content": "hello" }));
    assert_eq!((&saved[2]["content"], &saved[4]["content"]), (&json!("/slash"), &json!("/slash")));
    let list: Value = serde_json::from_str(&fs::read_to_string(&other).unwrap()).unwrap();
    assert_eq!(list, Value::from(saved));
    // Another program does not replace it without being told to.
    let ran = talk(&short, &format!("/save {name}\n/wrong\n/quit\nhello\n"));
    assert_eq!((ran.code, &*ran.out), (1, ""));
    assert!(ran.err.contains("exists; to replace it: /save! "), "{}", ran.err);
    assert!(ran.err.contains("there is no command /wrong"), "{}", ran.err);
    let ran = talk(&short, &format!("hello\n/undo\n/undo\n/save! {name}\n"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains("dropped: hello") && ran.err.contains("nothing to drop"),
        "{}",
        ran.err
    );
    assert!(read(&file).is_empty());
}

#[test]
fn a_conversation_is_saved_after_each_answer_and_goes_on() {
    let model = model("saved", 2000, Some(TEMPLATE));
    let file = folder("chat-saved-files").join("talk.jsonl");
    let name = file.to_str().unwrap();
    let short = ["--model", &model, "--max-new-tokens", "5", "--json"];
    let whole = found(&talk(&short, "one\ntwo\n"));
    let first = found(&talk(&[&short[..], &["--save", name]].concat(), "one\n"));
    assert_eq!(first[0], whole[0]);
    fails(&[&["chat"][..], &short, &["--save", name]].concat(), &["--save", "exists", "--load"]);
    let both = [&short[..], &["--load", name, "--save", name]].concat();
    assert_eq!(found(&talk(&both, "two\n"))[0], whole[1]);
    assert_eq!(read(&file).len(), 4);
    fs::write(&file, "{\"role\": \"user\"}\n").unwrap();
    fails(&[&["chat"][..], &short, &["--load", name]].concat(), &["--load", "line 1", "content"]);
}

#[test]
fn what_cannot_be_said_is_an_error() {
    fails(&["chat"], &["--model is required", "answers in a conversation", "Instruct"]);
    let bare = model("bare", 60, None);
    let lacks = ["has no chat template", "--chat-template FILE"];
    fails(&["chat", "--model", &bare], &lacks);
    fails(&["chat", "--model", "builtin:shakespeare"], &lacks);
    fails(&["chat", "--model", &bare, "--num-return-sequences", "2"], &["one answer"]);
    let home = folder("chat-templates");
    let write = |name: &str, text: &str| {
        fs::write(home.join(name), text).unwrap();
        home.join(name).display().to_string()
    };
    let broken = write("broken.jinja", "\n{% if %}");
    fails(&["chat", "--model", &bare, "--chat-template", &broken], &["broken.jinja, line 2"]);
    let good = write("good.jinja", TEMPLATE);
    let given = ["--model", &bare, "--chat-template", &good];
    let ran = talk(&given, "hello\n");
    assert_eq!(ran.code, 0, "{}", ran.err);
    // The next question does not fit; nothing is dropped.
    let long = "x".repeat(60);
    let ran = talk(&[&given[..], &["--json"]].concat(), &format!("{long}\nhi\n"));
    let said = found(&ran);
    assert_eq!(ran.code, 1);
    let error = said[0]["error"].as_str().unwrap();
    assert!(error.contains("tokens, and the model's context of 60"), "{error}");
    assert!(said[1]["message"]["content"].is_string(), "{said:?}");
    let refuses = write("refuses.jinja", "{{ raise_exception('only poems') }}");
    let ran = talk(&["--model", &bare, "--chat-template", &refuses], "hello\n");
    assert_eq!((ran.code, &*ran.out), (1, "\n"));
    assert!(ran.err.contains("refuses.jinja, line 1: only poems"), "{}", ran.err);
    let forever = write(
        "forever.jinja",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    );
    let ran = talk(&["--model", &bare, "--chat-template", &forever], "hello\n");
    assert!(ran.err.contains("loop forever"), "{}", ran.err);
}

/// A person presses Ctrl-C while a long answer comes: it stops, and the next one comes.
#[test]
#[cfg(unix)]
fn a_signal_stops_the_answer_and_not_the_program() {
    let model = model("signal", 200_000, Some(TEMPLATE));
    let file = folder("chat-signal-files").join("talk.jsonl");
    let mut child =
        command(&["chat", "--model", &model, "--min-length", "190000", "--max-length", "199000"]);
    child.args(["--save", file.to_str().unwrap()]);
    let mut fresh = Command::new("env");
    fresh.arg("--default-signal").arg(child.get_program()).args(child.get_args());
    fresh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = fresh.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let interrupt = |id: u32| {
        let sent = Command::new("kill").args(["-INT", &id.to_string()]).status().unwrap();
        assert!(sent.success());
    };
    for question in ["hello\n", "again\n"] {
        stdin.write_all(question.as_bytes()).unwrap();
        stdin.flush().unwrap();
        // It has begun to answer.
        let mut first = [0];
        out.read_exact(&mut first).unwrap();
        interrupt(child.id());
        let mut rest = String::new();
        out.read_line(&mut rest).unwrap();
        assert!(rest.ends_with('\n'));
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert_eq!(err.matches("stopped").count(), 2, "{err}");
    let saved = read(&file);
    assert_eq!(saved.len(), 4);
    assert!(!saved[1]["content"].as_str().unwrap().is_empty());
}
