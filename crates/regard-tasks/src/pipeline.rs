//! Typed interface of the tasks, for the program, services and other languages: inputs, parameters
//! and responses, each with a JSON schema.
//!
//! A request is `{"inputs": …, "parameters": {…}}`, as in Hugging Face's inference API: one input
//! gives one response, a list of inputs a list of responses. Requests carry text or bytes (base64),
//! never paths.
//!
//! ```
//! use regard_tasks::pipeline::{TASKS, task};
//!
//! assert!(TASKS.iter().any(|row| row.name == "tag"));
//! let schema = (task("tag").unwrap().request)();
//! assert!(schema.get("properties").unwrap().get("inputs").is_some());
//! ```

use crate::tasks;
use regard_models::{Error, ModelFiles, Result, values};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::tasks::TASKS;

/// An opened model that does one task.
pub trait Pipeline: Sized + Send {
    /// Name of the task, equal to [`TaskRow::name`].
    const TASK: &'static str;
    /// Input of one call: a text, an image, a question with its context.
    type Inputs: DeserializeOwned + JsonSchema;
    /// Settings of a call; missing ones take the model's or the task's default.
    type Parameters: Default + Serialize + DeserializeOwned + JsonSchema;
    /// Result for one input; `--json` prints exactly this.
    type Response: Serialize + JsonSchema;

    /// Opens a model from its files: a folder (which may be a training run's) or files in memory.
    fn open(files: ModelFiles) -> Result<Self>;

    /// Runs a batch and returns, in the order of the inputs, a response or an error for each.
    ///
    /// # Errors
    /// If the parameters are invalid.
    fn run(
        &self,
        inputs: &[Self::Inputs],
        parameters: &Self::Parameters,
    ) -> Result<Vec<Result<Self::Response>>>;

    /// Runs a batch of one.
    fn run_one(
        &self,
        inputs: Self::Inputs,
        parameters: &Self::Parameters,
    ) -> Result<Self::Response> {
        self.run(&[inputs], parameters)?.pop().unwrap_or_else(|| Err(Error::invalid("no response")))
    }
}

/// A request to a task.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(rename = "Request")]
#[serde(deny_unknown_fields)]
pub struct TaskRequest<I, P: Default + Serialize> {
    /// One input, or a list of them.
    pub inputs: OneOrMany<I>,
    /// Settings of the call.
    #[schemars(default)]
    pub parameters: P,
}

/// One value, or a list of them.
#[derive(Clone, Debug, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// A list of values.
    Many(Vec<T>),
    /// A single value.
    One(T),
}

/// Takes the place of a response in a list if its input failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Error message.
    pub error: String,
}

/// An entry of the list of tasks: names, models, JSON schemas, and a function that opens a model.
pub struct TaskRow {
    /// Name of the task: that of its module and of `task` in recipes, and of its command where a
    /// command does one task only.
    pub name: &'static str,
    /// Command of the program that runs the task.
    pub verb: &'static str,
    /// Description of its models, completing the phrase "a model that …".
    pub does: &'static str,
    /// Task whose trained models it uses: `generate` for `score`, `fill` for `embed` and
    /// `search`; otherwise the task itself.
    pub models: &'static str,
    /// Name of a recipe that trains a model for the task.
    pub recipe: &'static str,
    /// Id of a Hugging Face Hub model for the task; empty if none is known to load.
    pub hub: &'static str,
    /// Whether its models should be trained for it in a way that no recipe has: for embeddings, or for
    /// conversations. Other models of texts can be given, but none of them is a default.
    pub is_trained_elsewhere: bool,
    /// Returns the JSON schema of a request.
    pub request: fn() -> Schema,
    /// Returns the JSON schema of a response.
    pub response: fn() -> Schema,
    /// Opens a model for the task.
    pub open: fn(ModelFiles) -> Result<Box<dyn Opened>>,
}

/// Arguments of [`TaskRow::of`].
pub struct About {
    /// See [`TaskRow::verb`].
    pub verb: &'static str,
    /// See [`TaskRow::does`].
    pub does: &'static str,
    /// See [`TaskRow::models`].
    pub models: &'static str,
    /// See [`TaskRow::recipe`].
    pub recipe: &'static str,
    /// See [`TaskRow::hub`].
    pub hub: &'static str,
}

impl TaskRow {
    /// Builds the row of a pipeline.
    pub const fn of<P: Pipeline + 'static>(about: About) -> TaskRow {
        let About { verb, does, models, recipe, hub } = about;
        let request =
            || generator().into_root_schema_for::<TaskRequest<P::Inputs, P::Parameters>>();
        let response = || generator().into_root_schema_for::<P::Response>();
        let open = |files| Ok(Box::new(Typed(P::open(files)?)) as Box<dyn Opened>);
        TaskRow {
            name: P::TASK,
            verb,
            does,
            models,
            recipe,
            hub,
            is_trained_elsewhere: false,
            request,
            response,
            open,
        }
    }

    /// Sets that no recipe trains its models.
    pub const fn trained_elsewhere(self) -> TaskRow {
        TaskRow { is_trained_elsewhere: true, ..self }
    }
}

fn generator() -> SchemaGenerator {
    SchemaGenerator::default()
}

/// Returns the row of the task with this name.
pub fn task(name: &str) -> Option<&'static TaskRow> {
    tasks::TASKS.iter().find(|row| row.name == name)
}

/// An opened model of any task, called with JSON.
pub trait Opened: Send {
    /// Runs a request. Returns a response, or a list of them for a list of inputs, with a
    /// [`Failure`] in place of each that failed.
    ///
    /// # Errors
    /// If the request does not match the task's schema, its parameters are invalid, or its only
    /// input fails.
    fn call(&self, request: Value) -> Result<Value>;
}

struct Typed<P>(P);

/// Parses a request; error messages name the key.
fn parse<P: Pipeline>(request: Value) -> Result<TaskRequest<P::Inputs, P::Parameters>> {
    fn part<T: DeserializeOwned>(key: &str, value: Value) -> Result<T> {
        values::read_at(key, &value).map_err(Error::Invalid)
    }
    let Value::Object(mut request) = request else {
        return Err(Error::invalid("request: need an object with inputs and parameters"));
    };
    let inputs = request.remove("inputs");
    let inputs = match inputs.ok_or_else(|| Error::invalid("inputs: need one input or a list"))? {
        Value::Array(list) => {
            let each = list.into_iter().enumerate();
            let each = each.map(|(at, input)| part(&format!("inputs[{at}]"), input));
            OneOrMany::Many(each.collect::<Result<_>>()?)
        }
        one => OneOrMany::One(part("inputs", one)?),
    };
    let parameters = match request.remove("parameters") {
        None | Some(Value::Null) => P::Parameters::default(),
        Some(value) => part("parameters", value)?,
    };
    match request.keys().next() {
        Some(key) => {
            let message = format!("{key}: unknown key; a request has only inputs and parameters");
            Err(Error::invalid(message))
        }
        None => Ok(TaskRequest { inputs, parameters }),
    }
}

impl<P: Pipeline> Opened for Typed<P> {
    fn call(&self, request: Value) -> Result<Value> {
        let TaskRequest { inputs, parameters } = parse::<P>(request)?;
        let json = |response: P::Response| {
            serde_json::to_value(response).map_err(|e| Error::invalid(format!("response: {e}")))
        };
        match inputs {
            OneOrMany::One(input) => json(self.0.run_one(input, &parameters)?),
            OneOrMany::Many(inputs) => {
                let all = self.0.run(&inputs, &parameters)?;
                let one = |response: Result<P::Response>| match response {
                    Ok(response) => json(response),
                    Err(error) => Ok(serde_json::to_value(Failure { error: error.to_string() })
                        .expect("a string is JSON")),
                };
                all.into_iter().map(one).collect::<Result<_>>().map(Value::Array)
            }
        }
    }
}
