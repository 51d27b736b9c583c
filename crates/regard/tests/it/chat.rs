//! `regard chat`: turns, commands, files, and Ctrl-C.

use crate::program::{Ran, command, fails, folder, piped};
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

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
    let with = [&short[..], &["--json", "--commands"]].concat();
    let fresh = found(&talk(&with, "hello\n/reset\nhello\n/undo\nhello"));
    assert!(fresh.len() == 3 && fresh.iter().all(|again| *again == said[0]), "{fresh:?}");
    let with = [&with[..], &["--system", "be kind"]].concat();
    let system = found(&talk(&with, "hello\n/reset\nhello\n/system\n/reset\nhello"));
    assert_eq!(system[0], system[1]);
    assert!(system[0]["prompt_tokens"].as_u64().unwrap() > first);
    assert_eq!(system[2], said[0]);
    let guessed = talk(&[&short[..], &["--json", "--lookup", "4"]].concat(), "hello\nand you");
    let guessed = found(&guessed);
    assert_eq!(guessed[1]["message"], said[1]["message"]);
    let beams = talk(&[&short[..], &["--num-beams", "2"]].concat(), "hello\n");
    assert_eq!((beams.code, beams.out.lines().count()), (0, 1));
    // Settings of the model for other uses.
    let long = [&short[..], &["--min-length", "30"]].concat();
    for settings in [
        json!({ "do_sample": true, "num_return_sequences": 3 }),
        json!({ "num_beams": 3, "num_return_sequences": 2 }),
    ] {
        fs::write(Path::new(&model).join("generation_config.json"), settings.to_string()).unwrap();
        let said = found(&talk(&[&long[..], &["--json"]].concat(), "hello\n"));
        assert!(said[0].get("alternatives").is_none(), "{said:?}");
        let content = said[0]["message"]["content"].as_str().unwrap();
        assert!(!content.is_empty(), "{said:?}");
        assert_eq!(talk(&long, "hello\n").out, format!("{content}\n"));
    }
}

#[test]
fn commands_are_told_from_questions() {
    let model = model("commands", 2000, Some(TEMPLATE));
    let home = folder("chat-commands-files");
    let (file, other) = (home.join("talk.jsonl"), home.join("talk.json"));
    let name = file.display();
    let short = ["--model", &model, "--max-new-tokens", "3", "--commands"];
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
    // An empty line for each, as for a question that fails.
    assert_eq!((ran.code, &*ran.out), (1, "\n\n"));
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
    let ran = talk(&[&short[..], &["--json"]].concat(), "/wrong\n");
    assert!(found(&ran)[0]["error"].as_str().unwrap().contains("no command /wrong"));
    // Without the flag, lines of a file do nothing but ask.
    let plain = home.join("plain.jsonl");
    let short = ["--model", &model, "--max-new-tokens", "3", "--save", plain.to_str().unwrap()];
    let lines = format!("/quit\n//a\n /b\n/etc/passwd, what is it?\n/save! {name}\n");
    let ran = talk(&short, &lines);
    assert_eq!((ran.code, ran.out.lines().count(), &*ran.err), (0, 5, ""));
    let asked: Vec<Value> = read(&plain).into_iter().step_by(2).collect();
    let asked: Vec<&str> = asked.iter().map(|one| one["content"].as_str().unwrap()).collect();
    assert_eq!(asked, lines.lines().collect::<Vec<_>>());
    assert!(read(&file).is_empty());
}

#[test]
fn a_conversation_is_saved_after_each_answer_and_goes_on() {
    let model = model("saved", 2000, Some(TEMPLATE));
    let file = folder("chat-saved-files").join("talk.jsonl");
    let name = file.to_str().unwrap();
    // Samples go on too.
    let drawn = ["--do-sample", "--temperature", "2", "--seed", "7"];
    let short = [&["--model", &model, "--max-new-tokens", "9", "--json"][..], &drawn].concat();
    let whole = found(&talk(&short, "one\ntwo\n"));
    let first = found(&talk(&[&short[..], &["--save", name]].concat(), "one\n"));
    assert_eq!(first[0], whole[0]);
    let chat = [&["chat"][..], &short[..]].concat();
    fails(&[&chat[..], &["--save", name]].concat(), &["--save", "exists", "--load"]);
    let both = [&short[..], &["--load", name, "--save", name]].concat();
    assert_eq!(found(&talk(&both, "two\n"))[0], whole[1]);
    assert_eq!(read(&file).len(), 4);
    fs::write(&file, "{\"role\": \"user\"}\n").unwrap();
    fails(&[&chat[..], &["--load", name]].concat(), &["--load", "line 1", "content"]);
    // What is asked again is answered otherwise.
    let again = found(&talk(&[&short[..], &["--commands"]].concat(), "one\n/undo\none\n"));
    assert_eq!(again[0], whole[0]);
    assert_ne!(again[1]["token_ids"], again[0]["token_ids"]);
    // The file stays until the next answer.
    let kept = file.with_file_name("kept.jsonl");
    let with = [&short[..], &["--commands", "--save", kept.to_str().unwrap()]].concat();
    let ran = talk(&with, "one\n/reset\n");
    assert_eq!((ran.code, read(&kept).len()), (0, 2), "{}", ran.err);
    assert!(ran.err.contains("kept.jsonl stays as it is until the next answer"), "{}", ran.err);
    let lists = file.with_file_name("tools.json");
    let text = r#"{"messages": [], "tools": []}"#;
    fs::write(&lists, text).unwrap();
    let lists_name = lists.to_str().unwrap();
    let both = [&chat[..], &["--load", lists_name, "--save", lists_name]].concat();
    fails(&both, &["--load", "tools.json", "`tools`"]);
    assert_eq!(fs::read_to_string(&lists).unwrap(), text);
}

/// A conversation goes on although its folder is gone.
#[test]
fn what_cannot_be_saved_is_told() {
    let model = model("lost", 2000, Some(TEMPLATE));
    let home = folder("chat-lost-files");
    let there = home.join("there");
    fs::create_dir(&there).unwrap();
    let file = there.join("talk.jsonl");
    let mut child = command(&["chat", "--model", &model, "--max-new-tokens", "3"]);
    child.args(["--save", file.to_str().unwrap()]);
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut answers = String::new();
    stdin.write_all(b"one\n").unwrap();
    out.read_line(&mut answers).unwrap();
    fs::rename(&there, home.join("elsewhere")).unwrap();
    stdin.write_all(b"two\n").unwrap();
    drop(stdin);
    out.read_to_string(&mut answers).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), answers.lines().count()), (Some(1), 2), "{err}");
    assert!(err.contains("note: --save: ") && err.contains("cannot be written"), "{err}");
}

#[test]
fn what_cannot_be_said_is_an_error() {
    fails(&["chat"], &["--model is required", "answers in a conversation", "Instruct"]);
    let bare = model("bare", 60, None);
    let lacks = ["has no chat template", "--chat-template FILE"];
    fails(&["chat", "--model", &bare], &lacks);
    // A command that is corrected can have the same file.
    let file = folder("chat-not-begun").join("talk.jsonl");
    fails(&["chat", "--model", &bare, "--save", file.to_str().unwrap()], &lacks);
    assert!(!file.exists());
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
    // The maximum length counts the conversation.
    let ran = talk(&[&given[..], &["--max-length", "9"]].concat(), "hello\n");
    assert_eq!((ran.code, &*ran.out), (1, "\n"));
    assert!(ran.err.contains("max_length: got 9, but the conversation has"), "{}", ran.err);
    let ran = talk(&[&given[..], &["--kv-cache-limit", "1KB"]].concat(), "hello\n");
    assert_eq!((ran.code, &*ran.out), (1, "\n"));
    assert!(ran.err.contains("KV cache: ") && ran.err.contains("--kv-cache f16"), "{}", ran.err);
}

/// Starts it with signals as a terminal leaves them.
#[cfg(unix)]
fn begun(args: &[&str]) -> Child {
    let child = command(args);
    let mut fresh = Command::new("env");
    fresh.arg("--default-signal").arg(child.get_program()).args(child.get_args());
    fresh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    fresh.spawn().expect("the binary starts")
}

#[cfg(unix)]
fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Starts a conversation with long answers, which is saved to a file: the program, its input and
/// output, and the file.
#[cfg(unix)]
fn begun_with_long_answers(
    name: &str,
    more: &[&str],
) -> (Child, ChildStdin, BufReader<ChildStdout>, PathBuf) {
    let model = model(name, 200_000, Some(TEMPLATE));
    let file = folder(&format!("chat-{name}-files")).join("talk.jsonl");
    let long = ["chat", "--model", &model, "--min-length", "190000", "--max-length", "199000"];
    let saved = ["--save", file.to_str().unwrap()];
    let mut child = begun(&[&long[..], &saved, more].concat());
    let (stdin, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, stdin, BufReader::new(out), file)
}

/// Somebody presses Ctrl-C while a long answer comes: it stops, and the next one comes.
#[test]
#[cfg(unix)]
fn a_signal_stops_the_answer_and_not_the_program() {
    let (child, mut stdin, mut out, file) = begun_with_long_answers("signal", &["--commands"]);
    for question in ["hello\n", "again\n"] {
        stdin.write_all(question.as_bytes()).unwrap();
        stdin.flush().unwrap();
        // It has begun to answer.
        let mut first = [0];
        out.read_exact(&mut first).unwrap();
        interrupt(&child);
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

/// Nobody types: the lines that follow are not answered.
#[test]
#[cfg(unix)]
fn a_signal_ends_a_program_that_reads_a_file() {
    let (child, mut stdin, mut out, file) = begun_with_long_answers("ended", &[]);
    stdin.write_all(b"hello\nagain\n").unwrap();
    stdin.flush().unwrap();
    let mut first = [0];
    out.read_exact(&mut first).unwrap();
    interrupt(&child);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with('\n') && rest.lines().count() == 1, "{rest:?}");
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert_eq!(err.matches("stopped").count(), 1, "{err}");
    // What was said is saved.
    assert_eq!(read(&file).len(), 2);
}
