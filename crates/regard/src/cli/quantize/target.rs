//! What `--to` names.

use clap::ValueEnum;
use regard_kernels::quant::Bits;
use regard_models::gguf::Kind;

use crate::hub::Storage;

/// Prefix of the types of GGUF files.
const GGUF: &str = "gguf:";

/// Type of a quantised model, and where it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A folder in Hugging Face's layout.
    Folder(Bits),
    /// A file of llama.cpp.
    Gguf(Kind),
}

impl Target {
    /// The name, as `--to` takes it.
    pub fn name(self) -> String {
        match self {
            Target::Folder(bits) => bits.name().to_string(),
            Target::Gguf(kind) => format!("{GGUF}{}", kind.name()),
        }
    }
}

/// Parses a value of `--to`.
pub fn parse(text: &str) -> Result<Target, String> {
    if let Some(kind) = text.strip_prefix(GGUF) {
        let found = Kind::WRITTEN.into_iter().find(|of| of.name().eq_ignore_ascii_case(kind));
        return found.map(Target::Gguf).ok_or_else(|| {
            format!("a GGUF file can be written in {}", Kind::WRITTEN.map(Kind::name).join(", "))
        });
    }
    Storage::from_str(text, false).map(|storage| Target::Folder(storage.bits())).map_err(|_| {
        let gguf = Kind::WRITTEN.map(|kind| format!("{GGUF}{}", kind.name()));
        format!("need one of {}, {}", Bits::ALL.map(Bits::name).join(", "), gguf.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_parsed_by_its_name() {
        let all = Bits::ALL.map(Target::Folder).into_iter();
        for target in all.chain(Kind::WRITTEN.map(Target::Gguf)) {
            assert_eq!(parse(&target.name()), Ok(target));
        }
        assert_eq!(parse("gguf:q8_0"), Ok(Target::Gguf(Kind::Q8_0)));
        assert!(parse("gguf:Q4_K").unwrap_err().contains("F32, F16, Q8_0, Q4_0"));
        assert!(parse("int3").unwrap_err().contains("int8, int8-groups, int4, gguf:F32"));
    }
}
