//! The files of a model, wherever they are: a folder, a snapshot of the Hugging Face Hub (which is
//! a folder too), one file of llama.cpp or llama2.c, or built into the program.

use crate::adapter::{self, Adapter};
use crate::checkpoint::{self, Arrays};
use crate::gguf::{self, Gguf, Kind, Pooling};
use crate::llama2c::{self, Llama2c};
use crate::vocabulary::Vocabulary;
use crate::{Error, Result, text, zoo};
use regard_attention::quant::Bits;
use serde_json::Value;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of a model in the Hugging Face layout.
#[derive(Clone, Debug)]
pub struct ModelFiles {
    place: Place,
    /// Number of bits to which weight matrices are quantised on load.
    storage: Option<Bits>,
    /// Adapter whose updates are added to the weights on load.
    adapter: Option<Arc<Adapter>>,
    /// Folder of the base of the folder's own adapter, if it is not the one that it names.
    base: Option<PathBuf>,
}

#[derive(Clone, Debug)]
enum Place {
    Folder(PathBuf),
    /// A model that is one file: configuration, weights and often the vocabulary.
    File(PathBuf),
    BuiltIn(BuiltIn),
}

/// A model that is one file.
enum Opened {
    Gguf(Gguf),
    Llama2c(Llama2c),
}

impl Opened {
    fn open(path: &Path) -> Result<Opened> {
        let bytes = checkpoint::map_file(path)?;
        // As a zip archive, or in the older format, which begins with a pickled number.
        if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"\x80\x02\x8a\x0a") {
            let message = "is a checkpoint of PyTorch: need its folder, with config.json";
            return Err(Error::file(path, message));
        }
        let opened = match bytes.starts_with(&gguf::MAGIC) {
            true => Gguf::parse(bytes).map(Opened::Gguf),
            // Files of llama2.c begin with a number that may be any.
            false if path.extension().is_some_and(|end| end == "gguf") => {
                Gguf::parse(bytes).map(Opened::Gguf)
            }
            false => Llama2c::parse(bytes).map(Opened::Llama2c),
        };
        opened.map_err(|message| Error::file(path, message))
    }
}

/// Ends of the names of files that are a model.
const ENDS: [&str; 3] = ["gguf", "bin", "data"];

/// Whether a path is that of a model that is one file, by its name.
pub fn is_one_file(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    ENDS.contains(&end) && path.is_file()
}

/// Files that are built into the program.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Name of the model.
    pub name: &'static str,
    /// Names and contents of the files.
    pub files: &'static [(&'static str, &'static [u8])],
}

impl<P: AsRef<Path> + ?Sized> From<&P> for ModelFiles {
    fn from(path: &P) -> ModelFiles {
        let path = path.as_ref().to_path_buf();
        let place = if is_one_file(&path) { Place::File(path) } else { Place::Folder(path) };
        place.into()
    }
}

impl From<BuiltIn> for ModelFiles {
    fn from(files: BuiltIn) -> ModelFiles {
        Place::BuiltIn(files).into()
    }
}

impl From<Place> for ModelFiles {
    fn from(place: Place) -> ModelFiles {
        ModelFiles { place, storage: None, adapter: None, base: None }
    }
}

impl BuiltIn {
    fn get(&self, name: &str) -> Option<&'static [u8]> {
        self.files.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
    }
}

impl ModelFiles {
    /// Quantises weight matrices when the model is opened for inference; `None` keeps the types of
    /// the files.
    pub fn stored_in(self, storage: Option<Bits>) -> ModelFiles {
        ModelFiles { storage, ..self }
    }

    /// Number of bits to which weight matrices are quantised when the model is opened, if any.
    pub fn storage(&self) -> Option<Bits> {
        self.storage
    }

    /// Adds the updates of an adapter to the weights when the model is opened.
    pub fn adapted(self, adapter: Adapter) -> ModelFiles {
        ModelFiles { adapter: Some(Arc::new(adapter)), ..self }
    }

    /// Replaces the folder, if it is one.
    ///
    /// # Errors
    /// Those of `folder`.
    pub fn in_folder(self, folder: impl FnOnce(&Path) -> Result<PathBuf>) -> Result<ModelFiles> {
        match &self.place {
            Place::Folder(path) => Ok(ModelFiles { place: Place::Folder(folder(path)?), ..self }),
            Place::File(_) | Place::BuiltIn(_) => Ok(self),
        }
    }

    /// Path of a file, for messages. For a built-in model, the name of the model stands for its
    /// folder; a model that is one file has no other.
    pub fn path(&self, name: &str) -> PathBuf {
        match &self.place {
            Place::File(file) => file.clone(),
            Place::Folder(_) | Place::BuiltIn(_) => self.place().join(name),
        }
    }

    /// Path of the folder or of the one file, for messages.
    pub fn place(&self) -> &Path {
        match &self.place {
            Place::Folder(path) | Place::File(path) => path,
            Place::BuiltIn(files) => Path::new(files.name),
        }
    }

    /// The folder; `None` for a built-in model and for one that is a file.
    pub fn folder(&self) -> Option<&Path> {
        match &self.place {
            Place::Folder(folder) => Some(folder),
            Place::File(_) | Place::BuiltIn(_) => None,
        }
    }

    /// The file, if the model is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.place {
            Place::File(file) => Some(file),
            Place::Folder(_) | Place::BuiltIn(_) => None,
        }
    }

    /// Returns the vocabulary of a model that is one file; `None` for others, whose tokenizers are
    /// files of their own.
    ///
    /// # Errors
    /// If the file has none, or one that is not supported.
    pub fn vocabulary(&self) -> Result<Option<Vocabulary>> {
        let Place::File(path) = &self.place else { return Ok(None) };
        let wrong = |message: String| Error::file(path, message);
        match Opened::open(path)? {
            Opened::Gguf(file) => {
                let found = file.vocabulary().map_err(wrong)?;
                found.map(Some).ok_or_else(|| wrong("has no tokenizer.ggml.tokens".into()))
            }
            Opened::Llama2c(file) => match file.vocabulary().map_err(wrong)? {
                Some(vocabulary) => Ok(Some(vocabulary)),
                None => {
                    let beside = path.with_file_name(llama2c::TOKENIZER);
                    if !beside.exists() {
                        let name = llama2c::TOKENIZER;
                        return Err(wrong(format!("has no vocabulary: need {name} beside it")));
                    }
                    file.vocabulary_beside(&beside).map(Some)
                }
            },
        }
    }

    /// Returns the pooling of an encoder in a GGUF file, if it says one.
    ///
    /// # Errors
    /// If it is not supported.
    pub fn pooling(&self) -> Result<Option<Pooling>> {
        match self.gguf()? {
            Some((path, file)) => file.pooling().map_err(|message| Error::file(path, message)),
            None => Ok(None),
        }
    }

    /// Returns the element types of the tensors of a GGUF file; none of other models.
    pub fn kinds(&self) -> Result<Vec<Kind>> {
        let file = self.gguf()?.map(|(_, file)| file);
        let mut kinds = vec![];
        for (_, kind) in file.iter().flat_map(Gguf::kinds) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        Ok(kinds)
    }

    /// The GGUF file, if the model is one.
    fn gguf(&self) -> Result<Option<(&Path, Gguf)>> {
        let Place::File(path) = &self.place else { return Ok(None) };
        match Opened::open(path)? {
            Opened::Gguf(file) => Ok(Some((path.as_path(), file))),
            Opened::Llama2c(_) => Ok(None),
        }
    }

    /// Whether there is a file of this name. It may not be a regular file; reading it then returns
    /// an error.
    pub fn has(&self, name: &str) -> bool {
        match &self.place {
            Place::Folder(folder) => folder.join(name).exists(),
            Place::File(_) => false,
            Place::BuiltIn(files) => files.get(name).is_some(),
        }
    }

    /// Reads a file of at most `largest` bytes.
    ///
    /// # Errors
    /// If there is none, if it is larger, or if it is not a regular file.
    pub fn read(&self, name: &str, largest: u64) -> Result<Cow<'static, [u8]>> {
        match &self.place {
            Place::Folder(folder) => {
                checkpoint::read_file(&folder.join(name), largest).map(Cow::Owned)
            }
            Place::File(file) => Err(Error::file(file, format!("is a file and has no {name}"))),
            Place::BuiltIn(files) => files
                .get(name)
                .map(Cow::Borrowed)
                .ok_or_else(|| Error::file(self.path(name), "is not a built-in file")),
        }
    }

    /// Reads and parses a text file, such as a configuration.
    ///
    /// # Errors
    /// As [`ModelFiles::read`], and the error of `parse`, with the path of the file.
    pub fn parse<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T> {
        let bytes = self.read(name, checkpoint::LARGEST_TEXT)?;
        parse(&bytes).map_err(|message| Error::file(self.path(name), message))
    }

    /// Reads `config.json`. For old checkpoints, keys that it lacks are inferred from the names of
    /// tensors.
    pub fn config(&self) -> Result<Value> {
        match &self.place {
            Place::Folder(folder) => text::read_config(folder),
            Place::File(path) => match Opened::open(path)? {
                Opened::Gguf(file) => file.config().map_err(|message| Error::file(path, message)),
                Opened::Llama2c(file) => Ok(file.config()),
            },
            Place::BuiltIn(_) => self.parse(checkpoint::CONFIG, |bytes| {
                serde_json::from_slice(bytes).map_err(|e| format!("not JSON: {e}"))
            }),
        }
    }

    /// Returns the weights without copying where possible: memory-mapped from a folder, or as part
    /// of the program's binary. Updates of adapters are added: that of [`ModelFiles::adapted`], and
    /// that of a folder which holds an adapter in place of weights, to the weights of its base.
    pub fn weights(&self) -> Result<Arrays> {
        let own = self.own_adapter().map(Adapter::open).transpose()?;
        let mut arrays = match &self.place {
            Place::Folder(_) => checkpoint::map_weights(&self.weights_folder()?)?,
            Place::File(path) => self.weights_of_file(path)?,
            Place::BuiltIn(_) => {
                let bytes = self.read(checkpoint::WEIGHTS, u64::MAX)?;
                let arrays = match bytes {
                    Cow::Borrowed(bytes) => checkpoint::weights_from_bytes(bytes),
                    Cow::Owned(bytes) => checkpoint::weights_from_bytes(bytes),
                };
                arrays.map_err(|message| Error::file(self.path(checkpoint::WEIGHTS), message))?
            }
        };
        for adapter in own.iter().chain(self.adapter.as_deref()) {
            let layers = zoo::linear_layers_of(&self.config()?, &arrays);
            let layers =
                layers.map_err(|e| Error::file(self.path(checkpoint::CONFIG), e.to_string()))?;
            adapter.merge(&layers, &mut arrays, &self.weights_path())?;
        }
        arrays.values_mut().for_each(|array| array.storage = self.storage);
        Ok(arrays)
    }

    /// Weights of a model that is one file.
    fn weights_of_file(&self, path: &Path) -> Result<Arrays> {
        match Opened::open(path)? {
            Opened::Gguf(file) => {
                // An adapter is added to floating point.
                let storage = self.storage.filter(|_| self.adapter.is_none());
                file.weights_in(storage).map_err(|message| Error::file(path, message))
            }
            Opened::Llama2c(file) => Ok(file.weights()),
        }
    }

    /// The folder, if it holds an adapter in place of weights: that of a run which trained one.
    fn own_adapter(&self) -> Option<&Path> {
        let is_alone = |folder: &&Path| adapter::is_adapter(folder) && !has_weights(folder);
        self.folder().filter(is_alone)
    }

    /// The folder of the weights: the model's own, or that of the base of its adapter.
    fn weights_folder(&self) -> Result<PathBuf> {
        let Some(folder) = self.own_adapter() else { return Ok(self.place().to_path_buf()) };
        let of_config = |what: &str| {
            let message = format!(
                "base_model_name_or_path: {what}. To use the adapter with the model that it was \
                 trained on: --model MODEL --adapter {}",
                folder.display()
            );
            Error::file(folder.join(adapter::CONFIG), message)
        };
        if let Some(base) = &self.base {
            return Ok(base.clone());
        }
        let named = adapter::read_config(folder)?.base;
        let named = named.ok_or_else(|| of_config("is missing, need the model that it is for"))?;
        let base = PathBuf::from(&named);
        match has_weights(&base) {
            true => Ok(base),
            false => {
                Err(of_config(&format!("got {named:?}, which is not a folder with weights here")))
            }
        }
    }

    /// Name and revision of the base of a folder that holds an adapter in place of weights, if it is
    /// no folder here.
    ///
    /// # Errors
    /// If the adapter's configuration cannot be read.
    pub fn base_elsewhere(&self) -> Result<Option<(String, Option<String>)>> {
        let Some(folder) = self.own_adapter() else { return Ok(None) };
        let config = adapter::read_config(folder)?;
        let named = config.base.filter(|base| !Path::new(base).exists());
        Ok(named.map(|named| (named, config.revision)))
    }

    /// Takes the weights of a folder for those of the base.
    pub fn with_base(self, base: PathBuf) -> ModelFiles {
        ModelFiles { base: Some(base), ..self }
    }

    /// Whether there are weights, in any supported format.
    pub fn has_weights(&self) -> bool {
        let own = checkpoint::PLACES.iter().any(|name| self.has(name));
        self.file().is_some() || own || self.own_adapter().is_some()
    }

    /// Path of the weights or of their index, for messages.
    pub fn weights_path(&self) -> PathBuf {
        match (&self.place, self.own_adapter()) {
            (Place::Folder(_), Some(folder)) => adapter::weights_file(folder),
            (Place::Folder(folder), None) => checkpoint::weights_file(folder),
            (Place::BuiltIn(_), _) => self.path(checkpoint::WEIGHTS),
            (Place::File(file), _) => file.clone(),
        }
    }

    /// Files of the weights of a folder: one, or the shards of an index; and those of adapters.
    /// Empty for a built-in model.
    pub fn weight_files(&self) -> Result<Vec<PathBuf>> {
        let mut all = vec![];
        if self.folder().is_some() {
            let folder = self.weights_folder()?;
            let file = checkpoint::weights_file(&folder);
            match file.extension().is_some_and(|end| end == "json") {
                true => all.extend(checkpoint::shards(&file)?.iter().map(|s| folder.join(s))),
                false => all.push(file),
            }
        }
        all.extend(self.file().map(Path::to_path_buf));
        all.extend(self.own_adapter().map(adapter::weights_file));
        all.extend(self.adapter.as_ref().map(|adapter| adapter.weights().to_path_buf()));
        Ok(all)
    }

    /// Size of the weight files in bytes.
    pub fn weights_size(&self) -> Result<u64> {
        let built_in = match &self.place {
            Place::Folder(_) | Place::File(_) => 0,
            Place::BuiltIn(files) => {
                files.get(checkpoint::WEIGHTS).map_or(0, |bytes| bytes.len() as u64)
            }
        };
        let size =
            |path: &PathBuf| std::fs::metadata(path).map(|m| m.len()).map_err(Error::io(path));
        let files: u64 = self.weight_files()?.iter().map(size).sum::<Result<_>>()?;
        Ok(built_in + files)
    }
}

/// Whether a folder has weights, in any supported format.
fn has_weights(folder: &Path) -> bool {
    checkpoint::PLACES.iter().any(|name| folder.join(name).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: BuiltIn =
        BuiltIn { name: "tiny", files: &[("config.json", b"{\"model_type\": 3}")] };

    #[test]
    fn what_is_built_in_reads_as_a_folder_does() {
        let files = ModelFiles::from(TINY);
        assert_eq!(files.config().unwrap()["model_type"], 3);
        assert!(files.has("config.json") && !files.has("model.safetensors"));
        let error = files.weights().unwrap_err().to_string();
        assert!(error.contains("tiny/model.safetensors"), "{error}");
        let error = files.parse("config.json", |_| Err::<(), _>("is odd".into())).unwrap_err();
        assert_eq!(error.to_string(), "tiny/config.json: is odd");
    }
}
