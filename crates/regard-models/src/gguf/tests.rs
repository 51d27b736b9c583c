use super::*;
use regard_attention::layers::{RotaryConfig, Scaling};

/// A GGUF file, piece by piece.
#[derive(Default)]
struct File {
    keys: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: Vec<u8>,
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

impl File {
    fn key(mut self, key: &str, kind: u32, value: &[u8]) -> File {
        self.keys.push([&text(key)[..], &kind.to_le_bytes(), value].concat());
        self
    }

    fn number(self, key: &str, number: u32) -> File {
        self.key(key, 4, &number.to_le_bytes())
    }

    fn tensor(mut self, name: &str, axes: &[u64], kind: u32, offset: u64) -> File {
        let axes: Vec<u8> = [&(axes.len() as u32).to_le_bytes()[..]]
            .into_iter()
            .map(<[u8]>::to_vec)
            .chain(axes.iter().map(|axis| axis.to_le_bytes().to_vec()))
            .flatten()
            .collect();
        let rest = [&kind.to_le_bytes()[..], &offset.to_le_bytes()].concat();
        self.tensors.push([text(name), axes, rest].concat());
        self
    }

    fn data(mut self, size: usize) -> File {
        self.data = vec![0; size];
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend((self.keys.len() as u64).to_le_bytes());
        self.keys.iter().chain(&self.tensors).for_each(|part| bytes.extend(part));
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes.extend(&self.data);
        bytes
    }

    fn parse(&self) -> Result<Gguf, String> {
        Gguf::parse(self.bytes().into())
    }
}

fn fixture(name: &str) -> Gguf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/gguf");
    Gguf::open(&folder.join(name)).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_type_is_what_its_library_makes_of_it() {
    let file = fixture("kinds.gguf");
    let mut seen = 0;
    for (name, kind) in file.kinds() {
        let Some(of) = name.strip_suffix(".weight") else { continue };
        assert_eq!(kind.name(), of);
        let (got, wanted) = (file.tensor(name).unwrap(), file.tensor(&format!("{of}.floats")));
        assert_eq!(got, wanted.unwrap(), "{of}");
        // Also as a weight.
        let weight = file.array(&file.header.tensors[name], Change::None, None).unwrap();
        assert_eq!(weight.shape, [3, 512]);
        assert_eq!(weight, got, "{of} as a weight");
        seen += 1;
    }
    assert_eq!(seen, 8);
}

/// A panel of the kernels has 16 rows: one row would take 16 times its size.
#[test]
fn blocks_are_kept_in_whole_panels() {
    for (kind, size, bits) in [(2, 18, "int4"), (8, 34, "int8-groups")] {
        for (rows, kept) in [(16, Some(bits)), (15, None)] {
            let file = File::default()
                .key("general.architecture", 8, &text("llama"))
                .tensor("output.weight", &[32, rows], kind, 0)
                .data(rows as usize * size);
            let weights = file.parse().unwrap().weights().unwrap();
            let found = weights["lm_head.weight"].quantized_bits();
            assert_eq!(found.map(|bits| bits.name()), kept, "{rows} rows");
        }
    }
}

/// Matrices of other types take no more memory than they are stored in.
#[test]
fn types_that_kernels_do_not_have_are_quantised_as_they_are_read() {
    let name = "model.layers.0.self_attn.v_proj.weight";
    let file = File::default()
        .key("general.architecture", 8, &text("llama"))
        .tensor("blk.0.attn_v.weight", &[256, 32], 14, 0)
        .tensor("token_embd.weight", &[256, 32], 14, 32 * 210);
    // Each block has the scale 1/16 in its last two bytes.
    let byte = |i: usize| match i % 210 {
        208 => 0,
        209 => 0x2c,
        _ => i as u8,
    };
    let data = (0..2 * 32 * 210).map(byte).collect();
    let file = File { data, ..file }.parse().unwrap();
    let floats = file.weights().unwrap();
    assert!(floats.values().all(|array| !array.is_quantized()));
    for bits in [Bits::Int4, Bits::Int8] {
        let weights = file.weights_in(Some(bits)).unwrap();
        assert_eq!(weights[name].quantized_bits(), Some(bits));
        let rows = Tensor::<2>::from_data(
            TensorData::new(floats[name].floats().unwrap().into_owned(), [32, 256]),
            &Device::flex(),
        );
        let wanted = QuantizedWeight::of_rows(bits, rows).unwrap().floats();
        assert_eq!(*weights[name].floats().unwrap(), wanted);
        // Tables of embeddings have rules of their own.
        assert!(!weights["model.embed_tokens.weight"].is_quantized());
    }
}

/// What a hostile file has, and what the message says of it.
#[test]
fn what_cannot_be_is_refused() {
    let huge = u64::MAX.to_le_bytes();
    let many = [&8u32.to_le_bytes()[..], &huge].concat();
    let deep = [&9u32.to_le_bytes()[..], &huge].concat();
    let rows: [(File, &str); 19] = [
        (File::default().key("k", 8, &huge), "of which the file has"),
        (File::default().key("k", 9, &many), "k: its header is not complete"),
        (File::default().key("k", 9, &deep), "k: is an array of arrays"),
        (File::default().key("k", 13, &[]), "k: its type is 13, need 0 to 12"),
        (File::default().number("k", 1).number("k", 2), "the key k twice"),
        (File::default().key("", 4, &[0; 4]), "a key has 0 bytes"),
        (File::default().number("general.alignment", 12), "general.alignment: got 12"),
        (File::default().number("general.alignment", 1 << 31), "general.alignment: got 2147483648"),
        (
            File::default().key("general.alignment", 8, &text("32")),
            "general.alignment: need a number",
        ),
        (File::default().key("general.alignment", 7, &[1]), "general.alignment: need a number"),
        (File::default().tensor("t", &[1; 5], 0, 0), "t: has 5 axes, need 1 to 4"),
        (File::default().tensor("t", &[1 << 63, 4], 0, 0), "which no file can hold"),
        (File::default().tensor("t", &[0], 0, 0), "which no file can hold"),
        (File::default().tensor("t", &[8], 0, 0), "t: has 32 bytes at 0 of the data"),
        (File::default().tensor("t", &[8], 0, u64::MAX - 31).data(32), "t: has 32 bytes at"),
        (File::default().tensor("t", &[8], 0, 4).data(64), "begins at 4 of the data"),
        (File::default().tensor("t", &[33], 8, 0).data(64), "rows of 33 elements of Q8_0"),
        (
            File::default().tensor("t", &[8], 0, 0).tensor("u", &[8], 0, 0).data(64),
            "t and u have the same bytes",
        ),
        (
            File::default().tensor("t", &[8], 0, 0).tensor("t", &[8], 0, 32).data(64),
            "the tensor t twice",
        ),
    ];
    for (file, part) in rows {
        let error = file.parse().unwrap_err();
        assert!(error.contains(part), "{error} / {part}");
    }
    let kinds = "t: is Q2_K, need one of F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K, Q6_K";
    assert_eq!(File::default().tensor("t", &[256], 10, 0).parse().unwrap_err(), kinds);
    let unknown = File::default().tensor("t", &[256], 99, 0).parse().unwrap_err();
    assert!(unknown.starts_with("t: is the unknown type 99, need one of F32"), "{unknown}");
}

#[test]
fn other_files_and_versions_are_named() {
    let bytes = File::default().bytes();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        Gguf::parse(bytes.into()).unwrap_err()
    };
    assert!(with(0, b'X').contains("does not begin with \"GGUF\""));
    assert!(with(4, 1).contains("version 1 of GGUF, need 2 or 3"));
    assert!(with(14, 1).contains("tensors by its header, need at most 65536"));
    let swapped = [b"GGUF", &3u32.to_be_bytes()[..], &[0; 16]].concat();
    assert!(Gguf::parse(swapped.into()).unwrap_err().contains("big-endian"));
    let cut = Gguf::parse(b"GGUF\x03\0\0\0\0\0".to_vec().into()).unwrap_err();
    assert!(cut.contains("it may be truncated"), "{cut}");
    let other = File::default().key("general.architecture", 8, &text("mamba")).parse().unwrap();
    let error = other.config().unwrap_err();
    assert!(error.contains("\"mamba\", need one of llama, qwen3, gemma3, gpt2, bert"), "{error}");
}

/// A decoder of an architecture with two layers, without one of its keys.
fn decoder(of: &str, without: &str) -> File {
    let eps = format!("{of}.attention.layer_norm_rms_epsilon");
    let mut file = File::default()
        .key("general.architecture", 8, &text(of))
        .key(&eps, 6, &1e-5f32.to_le_bytes())
        .tensor("token_embd.weight", &[128, 4], 0, 0)
        .data(2048);
    for (key, number) in [
        ("embedding_length", 128),
        ("block_count", 2),
        ("feed_forward_length", 64),
        ("context_length", 16384),
        ("attention.head_count", 2),
    ] {
        if key != without {
            file = file.number(&format!("{of}.{key}"), number);
        }
    }
    file
}

/// An array of numbers of 32 bits.
fn numbers(all: &[u32]) -> Vec<u8> {
    let begin = [&4u32.to_le_bytes()[..], &(all.len() as u64).to_le_bytes()].concat();
    all.iter().fold(begin, |bytes, n| [bytes, n.to_le_bytes().to_vec()].concat())
}

#[test]
fn keys_that_would_be_ignored_are_refused() {
    let rows: [(File, &str); 11] = [
        (
            decoder("llama", "block_count").key("llama.block_count", 8, &text("2")),
            "llama.block_count: need a number of at least 0",
        ),
        (
            decoder("llama", "").number("llama.attention.sliding_window", 4096),
            "llama.attention.sliding_window: got 4096; a window shorter",
        ),
        (
            decoder("qwen3", "").number("qwen3.attention.sliding_window", 4096),
            "qwen3.attention.sliding_window: got 4096",
        ),
        (
            decoder("gemma3", "").number("gemma3.attention.sliding_window_pattern", 4),
            "gemma3.attention.sliding_window_pattern: got 4, need 6",
        ),
        (
            decoder("llama", "").key("llama.attention.causal", 7, &[0]),
            "llama.attention.causal: got false, need true",
        ),
        (
            decoder("llama", "").key("llama.attention.scale", 6, &0.5f32.to_le_bytes()),
            "llama.attention.scale: got 0.5, need 0.125",
        ),
        (
            decoder("gemma3", "").key("gemma3.attn_logit_softcapping", 6, &50f32.to_le_bytes()),
            "gemma3.attn_logit_softcapping: got 50",
        ),
        (
            decoder("llama", "attention.head_count").key(
                "llama.attention.head_count",
                9,
                &numbers(&[2, 2, 2]),
            ),
            "llama.attention.head_count: has 3 numbers, need one for each of 2 layers",
        ),
        (
            decoder("llama", "").key("llama.attention.head_count_kv", 9, &numbers(&[2, 1])),
            "llama.attention.head_count_kv: differs between layers",
        ),
        (
            decoder("llama", "").key("llama.attention.head_count_kv", 9, &texts(&["1", "1"])),
            "llama.attention.head_count_kv: need numbers",
        ),
        (
            decoder("llama", "").key("llama.rope.freq_base", 8, &text("10000")),
            "llama.rope.freq_base: need a finite number",
        ),
    ];
    for (file, part) in rows {
        let error = file.parse().unwrap().config().unwrap_err();
        assert!(error.contains(part), "{error} / {part}");
    }
    // What is as here, or changes nothing.
    let file = decoder("llama", "attention.head_count")
        .key("llama.attention.head_count", 9, &numbers(&[2, 2]))
        .key("llama.attention.scale", 6, &0.125f32.to_le_bytes())
        .number("llama.attention.sliding_window", 16384);
    assert_eq!(file.parse().unwrap().config().unwrap()["num_attention_heads"], 2);
    let file = decoder("gemma3", "").number("gemma3.attention.sliding_window_pattern", 6);
    let config = file.parse().unwrap().config().unwrap();
    let plain = decoder("gemma3", "").parse().unwrap().config().unwrap();
    assert_eq!(config["layer_types"], plain["layer_types"]);
}

/// As in llama.cpp, whatever the architecture.
#[test]
fn the_base_of_frequencies_is_10000_without_a_key() {
    for of in ["llama", "qwen3", "gemma3"] {
        let config = decoder(of, "").parse().unwrap().config().unwrap();
        let all = &config["rope_parameters"];
        let all = if of == "gemma3" { &all["full_attention"] } else { all };
        assert_eq!(all["rope_theta"], 10_000.0, "{of}");
    }
}

/// Its rows of queries would not be moved.
#[test]
fn tensors_with_names_of_hugging_face_are_unexpected() {
    let name = "model.layers.0.self_attn.q_proj.weight";
    let file = decoder("llama", "").tensor(name, &[1], 0, 2048).data(2080);
    let error = file.parse().unwrap().weights().unwrap_err();
    assert!(error.starts_with(&format!("unexpected tensor {name}: ")), "{error}");
}

/// A file with the divisors of Llama 3's frequencies, as llama.cpp's converter computes them.
#[test]
fn scaling_is_found_from_the_divisors() {
    let config = RotaryConfig { base: 500_000.0, ..RotaryConfig::new(1, 64) };
    let (factor, low, high, original) = (32.0, 1.0, 4.0, 8192.0);
    let scaled =
        RotaryConfig { scaling: Scaling::Llama3 { factor, low, high, original }, ..config };
    let divisors: Vec<f32> = std::iter::zip(config.frequencies(), scaled.frequencies())
        .map(|(plain, scaled)| (plain / scaled) as f32)
        .collect();
    let with = |key: &str, value: f32, divisors: &[f32]| {
        let data: Vec<u8> = divisors.iter().flat_map(|x| x.to_le_bytes()).collect();
        let file = decoder("llama", "").key(key, 6, &value.to_le_bytes()).tensor(
            "rope_freqs.weight",
            &[32],
            0,
            2048,
        );
        File { data: [vec![0; 2048], data].concat(), ..file }.parse().unwrap()
    };
    let file = |divisors: &[f32]| with("llama.rope.freq_base", 500_000.0, divisors);
    // llama.cpp would apply both.
    let error = with("llama.rope.scaling.factor", 2.0, &divisors).config().unwrap_err();
    assert!(error.contains("rope.scaling.factor: not supported together"), "{error}");
    let config = file(&divisors).config().unwrap();
    let rope = &config["rope_parameters"];
    let keys = ["rope_type", "rope_theta", "factor", "original_max_position_embeddings"];
    let found = keys.map(|key| rope[key].to_string());
    assert_eq!(found, ["\"llama3\"", "500000.0", "32.0", "8192.0"]);
    assert_eq!(config["rms_norm_eps"], 1e-5);
    let mut other = divisors;
    other[20] += 1.0;
    let error = file(&other).config().unwrap_err();
    assert!(error.contains("is not the scaling of Llama 3"), "{error}");
}

fn texts(all: &[&str]) -> Vec<u8> {
    let begin = [&8u32.to_le_bytes()[..], &(all.len() as u64).to_le_bytes()].concat();
    all.iter().fold(begin, |bytes, one| [bytes, text(one)].concat())
}

#[test]
fn vocabularies_that_are_not_supported_are_named() {
    let file = |model: &str, pre: &str| {
        File::default()
            .key("tokenizer.ggml.tokens", 9, &texts(&["a", "b"]))
            .key("tokenizer.ggml.model", 8, &text(model))
            .key("tokenizer.ggml.pre", 8, &text(pre))
    };
    let rows: [(File, &str); 7] = [
        (
            file("gpt2", "deepseek-llm"),
            "tokenizer.ggml.pre: got \"deepseek-llm\", need one of gpt-2, llama-bpe, qwen2, smollm",
        ),
        (file("t5", "default"), "model: got \"t5\", need one of gpt2, llama, bert"),
        (file("llama", "default"), "has no tokenizer.ggml.scores"),
        (
            file("gpt2", "gpt-2").key("tokenizer.ggml.token_type", 9, &numbers(&[1; 3])),
            "token_type: got 3 numbers, need one for each of 2 tokens",
        ),
        (
            file("gpt2", "gpt-2").number("tokenizer.ggml.eos_token_id", 2),
            "tokenizer.ggml.eos_token_id: got 2, the vocabulary has 2 tokens",
        ),
        (
            file("gpt2", "gpt-2").key("tokenizer.ggml.token_type", 9, &{
                let numbers = [1u32, 7].map(u32::to_le_bytes).concat();
                [&5u32.to_le_bytes()[..], &2u64.to_le_bytes(), &numbers].concat()
            }),
            "token_type: element 1 is 7, need 1 to 6",
        ),
        (
            file("gpt2", "gpt-2").key("tokenizer.ggml.add_bos_token", 7, &[2]),
            "add_bos_token: need true or false",
        ),
    ];
    for (file, part) in rows {
        let error = file.parse().unwrap().vocabulary().unwrap_err();
        assert!(error.contains(part), "{error} / {part}");
    }
    let plain = file("gpt2", "qwen2").parse().unwrap().vocabulary().unwrap().unwrap();
    assert_eq!((plain.tokens.len(), plain.around), (2, [false, false]));
    let llama3 = file("gpt2", "llama-bpe").parse().unwrap().vocabulary().unwrap().unwrap();
    assert_eq!(llama3.around, [true, false]);
    assert!(File::default().parse().unwrap().vocabulary().unwrap().is_none());
}
