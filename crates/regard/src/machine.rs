//! Properties of this machine.

/// Name of the CPU; the architecture if it is unknown.
pub fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line =
            info.lines().find(|line| line.split(':').next().is_some_and(|k| k.trim() == name));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_string())
    };
    let part =
        || Some(format!("implementer {} part {}", field("CPU implementer")?, field("CPU part")?));
    field("model name").or_else(part).unwrap_or_else(|| std::env::consts::ARCH.into())
}

/// CPU features relevant to the kernels, each with whether it is available.
pub fn features() -> Vec<(&'static str, bool)> {
    #[cfg(target_arch = "x86_64")]
    macro_rules! detected {
        ($($name:tt)*) => { vec![$(($name, is_x86_feature_detected!($name))),*] };
    }
    #[cfg(target_arch = "aarch64")]
    macro_rules! detected {
        ($($name:tt)*) => { vec![$(($name, std::arch::is_aarch64_feature_detected!($name))),*] };
    }
    #[cfg(target_arch = "x86_64")]
    return detected!["sse4.2" "avx" "avx2" "fma" "f16c" "avx512f" "avx512vl" "avx512bw" "avx512dq"
        "avx512vnni" "avx512bf16"];
    #[cfg(target_arch = "aarch64")]
    return detected!["neon" "fp16" "dotprod" "bf16" "i8mm" "sve" "sve2"];
    #[allow(unreachable_code)]
    Vec::new()
}

/// Peak memory of this process in bytes; None outside of Linux.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kilobytes)
}
