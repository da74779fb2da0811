//! Chainsaw's operations.

use std::path::PathBuf;
use std::time::Duration;

use shared_json::{Value, json};

use super::answers::answer;
use super::objects::{command, find, has_condition, is_not_found, list, shown};
use super::polling::Pace;
use crate::action::{ActionError, Applied, Kubectl};
use crate::assertion::expression::{evaluate, fill, inner};
use crate::assertion::{Bindings, tree};
use crate::backend::Backend;
use crate::error::Error;
use crate::history::text;
use crate::manifest;
use crate::scenario::Scenario;
use crate::scenario::chainsaw::{
    Binding, CheckAction, DeleteAction, Expectation, Operation, Output, Step, Timeouts, WaitAction,
    WriteAction,
};

/// Chainsaw's default timeouts.
const APPLY: Duration = Duration::from_secs(5);
const ASSERT: Duration = Duration::from_secs(30);
const DELETE: Duration = Duration::from_secs(15);
/// So often expressions may ask the cluster something new before their value is known.
const QUESTIONS_MAX: usize = 64;

/// Plays the operations of one scenario.
pub(super) struct Player<'a> {
    scenario: &'a Scenario,
    kubectl: Kubectl,
    pace: Pace,
    bindings: Bindings,
    timeouts: Timeouts,
    /// Whether expressions in objects are evaluated, and the propagation policy of deletions, where an operation does not say.
    template: bool,
    propagation: Option<String>,
    /// How many operations have been played, of the step.
    operation: usize,
    commands: Vec<String>,
    /// A manifest that the server finds wrong, where the scenario does not expect that: bad input, not a failure.
    refused: Option<Error>,
    created: Vec<Value>,
    cleanup: Vec<Operation>,
}

/// Why an operation failed: a text for people.
type Outcome = Result<(), String>;

impl<'a> Player<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        backend: &Backend,
        namespace: &str,
        bindings: Bindings,
    ) -> Self {
        Self {
            scenario,
            kubectl: Kubectl::new(backend.client(), namespace),
            pace: Pace::of(backend),
            bindings,
            timeouts: scenario.test.spec.timeouts,
            template: scenario.test.spec.template.unwrap_or(true),
            propagation: scenario.test.spec.deletion_propagation_policy.clone(),
            operation: 0,
            commands: Vec::new(),
            refused: None,
            created: Vec::new(),
            cleanup: Vec::new(),
        }
    }

    /// Gives names to values, for the operations that follow.
    pub(super) async fn bind(&mut self, bindings: &[Binding]) -> Outcome {
        self.bindings = self.scope(bindings).await?;
        Ok(())
    }

    /// The name of the cluster that the test is for; empty for its own.
    pub(super) async fn cluster(&self) -> Result<String, String> {
        let name = self.scenario.test.spec.cluster.as_deref().unwrap_or_default();
        self.answered(|| named(name, &self.bindings)).await
    }

    /// Evaluates, with the answers of the cluster to the questions of expressions.
    async fn answered<T>(&self, evaluate: impl Fn() -> Result<T, String>) -> Result<T, String> {
        let questions = self.bindings.questions();
        questions.forget();
        for _ in 0..QUESTIONS_MAX {
            let result = evaluate();
            let open = questions.take_open();
            if open.is_empty() {
                return result;
            }
            for question in open {
                let answer = answer(&self.kubectl, &question).await;
                questions.answer(question, answer);
            }
        }
        Err(format!(
            "an expression asks the cluster more than {QUESTIONS_MAX} times"
        ))
    }

    /// Makes the scenario's namespace, unless it is there.
    pub(super) async fn make_namespace(&mut self, name: &str) -> Outcome {
        let template = self.scenario.test.spec.namespace_template.as_ref();
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let api = self
            .kubectl
            .api_of(&object)
            .await
            .map_err(|error| error.to_string())?;
        let found = api.get_opt(name).await.map_err(|error| error.to_string())?;
        if found.is_some() {
            return Ok(());
        }
        let scope = self
            .bindings
            .clone()
            .compiled_by(self.scenario.test.spec.namespace_template_compiler);
        let mut made = self
            .answered(|| fill(template.unwrap_or(&json!({})), &scope))
            .await?;
        made["apiVersion"] = json!("v1");
        made["kind"] = json!("Namespace");
        made["metadata"]["name"] = json!(name);
        self.kubectl
            .create(&made)
            .await
            .map_err(|error| error.to_string())?;
        self.created.push(made);
        Ok(())
    }

    pub(super) fn take_refusal(&mut self) -> Option<Error> {
        self.refused.take()
    }

    pub(super) fn take_commands(&mut self) -> Vec<String> {
        std::mem::take(&mut self.commands)
    }

    /// Plays a step.
    pub(super) async fn step(&mut self, step: &Step) -> Outcome {
        let (bindings, timeouts) = (self.bindings.clone(), self.timeouts);
        self.timeouts = step.timeouts.within(timeouts);
        let (template, propagation) = (self.template, self.propagation.clone());
        self.template = step.template.unwrap_or(template);
        self.propagation = step
            .deletion_propagation_policy
            .clone()
            .or_else(|| propagation.clone());
        self.operation = 0;
        self.cleanup.extend(step.cleanup.iter().cloned());
        self.bindings = self.bindings.clone().compiled_by(step.compiler);
        let result = match self.bind(&step.bindings).await {
            Ok(()) => self.operations(&step.operations, "try").await,
            Err(why) => Err(why),
        };
        let finally = self.operations(&step.finally, "finally").await;
        (self.timeouts, self.template, self.propagation) = (timeouts, template, propagation);
        self.bindings = bindings;
        result.and(finally)
    }

    async fn operations(&mut self, operations: &[Operation], block: &str) -> Outcome {
        for (index, operation) in operations.iter().enumerate() {
            let names = operation.actions().join(", ");
            self.operation(operation)
                .await
                .map_err(|why| format!("{block}[{index}] {names}: {why}"))?;
        }
        Ok(())
    }

    /// Plays the operations for a failure; their own failures do not matter.
    pub(super) async fn catch(&mut self, operations: &[Operation]) {
        if let Err(why) = self.operations(operations, "catch").await {
            self.commands.push(format!("# {why}"));
        }
    }

    /// Plays the clean-up operations of steps, and deletes the objects that they made.
    pub(super) async fn clean_up(&mut self) {
        let cleanup = std::mem::take(&mut self.cleanup);
        if let Err(why) = self.operations(&cleanup, "cleanup").await {
            tracing::warn!(why, "clean up");
        }
        if self.scenario.test.spec.skip_delete {
            return;
        }
        for object in std::mem::take(&mut self.created).into_iter().rev() {
            let Ok(api) = self.kubectl.api_of(&object).await else {
                continue;
            };
            // What is gone already needs no deletion.
            let _gone = self
                .kubectl
                .delete(&api, &text(&object, "/metadata/name"), None, None)
                .await;
        }
    }

    async fn operation(&mut self, operation: &Operation) -> Outcome {
        let language = self.bindings.compiler();
        self.bindings = self.bindings.clone().compiled_by(operation.compiler);
        let result = self.act(operation).await;
        // What the operation has bound stays; its language goes.
        self.bindings = self.bindings.clone().compiled_by(Some(language));
        result
    }

    async fn act(&mut self, operation: &Operation) -> Outcome {
        self.operation += 1;
        if let Some(name) = operation.passed_over() {
            self.commands.push(format!("# {name}: passed over"));
            return Ok(());
        }
        if let Some(action) = &operation.apply {
            self.write("apply", action).await
        } else if let Some(action) = &operation.create {
            self.write("create", action).await
        } else if let Some(action) = &operation.update {
            self.write("update", action).await
        } else if let Some(action) = &operation.patch {
            self.write("patch", action).await
        } else if let Some(action) = &operation.delete {
            self.delete(action).await
        } else if let Some(action) = &operation.assert {
            self.check(action, true).await
        } else if let Some(action) = &operation.error {
            self.check(action, false).await
        } else if let Some(action) = &operation.wait {
            self.wait(action).await
        } else if let Some(action) = &operation.sleep {
            tokio::time::sleep(action.duration.0).await;
            Ok(())
        } else {
            Err("no action is given".to_owned())
        }
    }

    /// The objects of a file or an inline one, with where each comes from.
    fn objects(
        &self,
        file: Option<&String>,
        inline: Option<&Value>,
        evaluated: bool,
        bindings: &Bindings,
    ) -> Result<Vec<(Value, String)>, String> {
        let documents: Vec<(Value, String)> = match (file, inline) {
            (Some(file), _) => {
                let file = named(file, bindings)?;
                let path: PathBuf = self.scenario.folder().join(&file);
                let documents = manifest::read(&path).map_err(|error| error.to_string())?;
                documents
                    .into_iter()
                    .map(|document| (document.object, format!("{file}:{}", document.line)))
                    .collect()
            }
            (None, Some(object)) => vec![(object.clone(), "the inline resource".to_owned())],
            (None, None) => Vec::new(),
        };
        documents
            .into_iter()
            .map(|(object, origin)| {
                let object = if evaluated {
                    fill(&object, bindings)?
                } else {
                    object
                };
                Ok((object, origin))
            })
            .collect()
    }

    /// The values by name, with more of them.
    async fn scope(&self, bindings: &[Binding]) -> Result<Bindings, String> {
        if bindings.is_empty() {
            return Ok(self.bindings.clone());
        }
        self.answered(|| {
            let mut scope = self.bindings.clone();
            for binding in bindings {
                let within = scope.clone().compiled_by(binding.compiler);
                let value = fill(&binding.value, &within)
                    .map_err(|why| format!("bindings: {}: {why}", binding.name))?;
                let name = named(&binding.name, &within)?;
                scope.set(&name, value);
            }
            Ok(scope)
        })
        .await
    }

    async fn write(&mut self, verb: &str, action: &WriteAction) -> Outcome {
        let mut scope = self.scope(&action.bindings).await?;
        let evaluated = action.template.unwrap_or(self.template);
        let objects = self
            .answered(|| self.objects(action.file.as_ref(), action.resource.as_ref(), evaluated, &scope))
            .await?;
        for (index, (object, origin)) in objects.into_iter().enumerate() {
            let ids = json!({"id": self.operation, "resourceId": index + 1});
            scope.set("operation", ids);
            self.commands.push(command(verb, action.file.as_deref(), &object));
            let limit = action
                .timeout
                .or(self.timeouts.apply)
                .map_or(APPLY, |timeout| timeout.0);
            let result = tokio::time::timeout(limit, self.write_one(verb, action, &object)).await;
            let result =
                result.unwrap_or_else(|_| Err(ActionError::Object(format!("not done within {limit:?}"))));
            let (shown, error) = match &result {
                Ok(shown) => (shown.clone(), Value::Null),
                Err(error) => (object.clone(), Value::from(error.to_string())),
            };
            if let Some(refusal) = error.as_str() {
                self.commands.push(format!("# {refusal}"));
            }
            let expected = self
                .answered(|| expected(&action.expect, &object, &shown, &error, &scope))
                .await?;
            if !expected {
                if let Err(ActionError::Api(error)) = &result
                    && matches!(&**error, kube::Error::Api(status) if matches!(status.code, 400 | 422))
                {
                    let place = self.scenario.folder().join(&origin);
                    self.refused = Some(Error::refused(verb, Some(place.display().to_string()), error));
                }
                result.map_err(|error| format!("{origin}: {error}"))?;
            }
            let outputs = self.answered(|| outputs(&action.outputs, &shown, &scope)).await?;
            for (name, value) in outputs {
                // The next object of the same action knows it, too.
                scope.set(&name, value.clone());
                self.bindings.set(&name, value);
            }
        }
        Ok(())
    }

    async fn write_one(
        &mut self,
        verb: &str,
        action: &WriteAction,
        object: &Value,
    ) -> Result<Value, ActionError> {
        let api = self.kubectl.api_of(object).await?;
        let name = text(object, "/metadata/name");
        if action.dry_run {
            let below = action.subresource.as_deref();
            return self.kubectl.dry_run(&api, verb, below, object).await;
        }
        match verb {
            "apply" => {
                if self.kubectl.apply(object).await? == Applied::Created {
                    self.created.push(object.clone());
                }
            }
            "create" => {
                self.kubectl.create(object).await?;
                self.created.push(object.clone());
            }
            "update" => {
                let mut next = object.clone();
                let live = api.get(&name).await?;
                next["metadata"]["resourceVersion"] = json!(live.metadata.resource_version);
                let next =
                    shared_json::from_value(next).map_err(|error| ActionError::Object(error.to_string()))?;
                api.replace(&name, &kube::api::PostParams::default(), &next)
                    .await?;
            }
            _ => {
                let below = action.subresource.as_deref();
                self.kubectl.patch(&api, &name, "merge", below, object).await?;
            }
        }
        // Without its last finalizer an object may be gone by now.
        let Some(live) = api.get_opt(&name).await? else {
            return Ok(object.clone());
        };
        shared_json::to_value(live).map_err(|error| ActionError::Object(error.to_string()))
    }

    async fn delete(&mut self, action: &DeleteAction) -> Outcome {
        let scope = self.scope(&action.bindings).await?;
        let targets: Vec<Value> = match (&action.reference, &action.file) {
            (Some(reference), _) => {
                let target = json!({
                    "apiVersion": reference.api_version, "kind": reference.kind,
                    "metadata": {
                        "name": reference.name, "namespace": reference.namespace.clone().unwrap_or_default(),
                        "labels": reference.labels,
                    },
                });
                vec![self.answered(|| fill(&target, &scope)).await?]
            }
            (None, file) => self
                .answered(|| {
                    let evaluated = action.template.unwrap_or(self.template);
                    self.objects(file.as_ref(), None, evaluated, &scope)
                })
                .await?
                .into_iter()
                .map(|(object, _)| object)
                .collect(),
        };
        let cascade = action
            .deletion_propagation_policy
            .as_ref()
            .or(self.propagation.as_ref())
            .map(|policy| policy.to_lowercase());
        let limit = action
            .timeout
            .or(self.timeouts.delete)
            .map_or(DELETE, |timeout| timeout.0);
        for target in targets {
            self.commands.push(command("delete", None, &target));
            let work = async {
                let api = self
                    .kubectl
                    .api_of(&target)
                    .await
                    .map_err(|error| error.to_string())?;
                for found in find(&api, &target).await.map_err(|error| error.to_string())? {
                    let name = text(&found, "/metadata/name");
                    match self.kubectl.delete(&api, &name, cascade.as_deref(), None).await {
                        Err(ActionError::Api(error)) if is_not_found(&error) => {}
                        other => other.map_err(|error| error.to_string())?,
                    }
                }
                // Chainsaw waits until what it deletes is gone.
                let deadline = tokio::time::Instant::now() + limit;
                loop {
                    let seen = self.pace.now();
                    let left = find(&api, &target).await.map_err(|error| error.to_string())?;
                    if left.is_empty() {
                        break;
                    }
                    self.pace.wait(seen, deadline).await;
                }
                Ok::<(), String>(())
            };
            let result = tokio::time::timeout(limit, work)
                .await
                .unwrap_or_else(|_| Err(format!("not gone within {limit:?}")));
            let error = result
                .as_ref()
                .err()
                .map_or(Value::Null, |why| Value::from(why.clone()));
            let expected = self
                .answered(|| expected(&action.expect, &target, &target, &error, &scope))
                .await?;
            if !expected {
                result?;
            }
        }
        Ok(())
    }

    /// Waits until every wanted object is there (`present`), or none of the unwanted is.
    async fn check(&mut self, action: &CheckAction, present: bool) -> Outcome {
        let scope = self.scope(&action.bindings).await?;
        let given = action.timeout.or(if present {
            self.timeouts.assert
        } else {
            self.timeouts.error
        });
        let limit = given.map_or(ASSERT, |timeout| timeout.0);
        for (wanted, origin) in self.trees(action, &scope)? {
            let mut selector = json!({"apiVersion": wanted["apiVersion"], "kind": wanted["kind"]});
            selector["metadata"] = self
                .answered(|| fill(wanted.get("metadata").unwrap_or(&json!({})), &scope))
                .await
                .unwrap_or_default();
            let deadline = tokio::time::Instant::now() + limit;
            loop {
                let seen = self.pace.now();
                let why = match self.look(&wanted, &selector, present, &scope).await {
                    Ok(()) => break,
                    Err(why) => why,
                };
                if tokio::time::Instant::now() >= deadline {
                    return Err(format!("{origin}: after {limit:?}: {why}"));
                }
                self.pace.wait(seen, deadline).await;
            }
        }
        Ok(())
    }

    /// The trees of a check, with the source of each.
    fn trees(&self, action: &CheckAction, scope: &Bindings) -> Result<Vec<(Value, String)>, String> {
        let Some(file) = &action.file else {
            let tree = action.resource.clone().unwrap_or_default();
            return Ok(vec![(tree, "the inline resource".to_owned())]);
        };
        let file = named(file, scope)?;
        let found =
            manifest::read_trees(&self.scenario.folder().join(&file)).map_err(|error| error.to_string())?;
        let with_line = |found: manifest::Document| (found.object, format!("{file}:{}", found.line));
        Ok(found.into_iter().map(with_line).collect())
    }

    async fn look(&self, wanted: &Value, selector: &Value, present: bool, scope: &Bindings) -> Outcome {
        if wanted.get("kind").is_none() {
            // It speaks of values alone.
            let wrong = self
                .answered(|| Ok(tree::check(wanted, &json!({}), scope)))
                .await?;
            return match (wrong.is_empty(), present) {
                (true, false) => Err("it is so and should not be".to_owned()),
                (false, true) => Err(wrong.join("; ")),
                _ => Ok(()),
            };
        }
        let api = match self.kubectl.api_of(selector).await {
            Ok(api) => api,
            // What is not served does not exist.
            Err(_) if !present => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let found = find(&api, selector).await.map_err(|error| error.to_string())?;
        let id = format!("{}/{}", text(selector, "/kind"), text(selector, "/metadata/name"));
        if present && found.is_empty() {
            return Err(format!("{id} is not there"));
        }
        let mut problems = Vec::new();
        for object in &found {
            let wrong = self.answered(|| Ok(tree::check(wanted, object, scope))).await?;
            match (wrong.is_empty(), present) {
                (true, true) => return Ok(()),
                (true, false) => {
                    return Err(format!(
                        "{}/{} is there and should not be",
                        text(object, "/kind"),
                        text(object, "/metadata/name")
                    ));
                }
                (false, _) => problems.extend(wrong.into_iter().map(|problem| format!("{id}: {problem}"))),
            }
        }
        if present { Err(problems.join("; ")) } else { Ok(()) }
    }

    async fn wait(&mut self, action: &WaitAction) -> Outcome {
        let limit = action
            .timeout
            .or(self.timeouts.exec)
            .map_or(ASSERT, |timeout| timeout.0);
        let target = json!({
            "apiVersion": action.api_version, "kind": action.kind,
            "metadata": {"name": action.name, "namespace": action.namespace.clone().unwrap_or_default()},
        });
        let target = self.answered(|| fill(&target, &self.bindings)).await?;
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            let seen = self.pace.now();
            let api = self
                .kubectl
                .api_of(&target)
                .await
                .map_err(|error| error.to_string())?;
            let found = match &action.selector {
                Some(selector) => list(&api, Some(selector)).await,
                None => find(&api, &target).await,
            }
            .map_err(|error| error.to_string())?;
            let until = &action.until;
            let done = match (
                &until.condition,
                &until.json_path,
                &until.creation,
                &until.deletion,
            ) {
                (Some(condition), ..) => {
                    let wanted = condition.value.as_deref().unwrap_or("True");
                    !found.is_empty()
                        && found
                            .iter()
                            .all(|object| has_condition(object, &condition.name, wanted))
                }
                (None, Some(path), ..) => {
                    let pointer = path
                        .path
                        .trim_matches(['{', '}'])
                        .replace('.', "/")
                        .replace(['[', ']'], "/");
                    let holds = |object: &Value| {
                        let value = object.pointer(pointer.trim_end_matches('/'));
                        value.is_some_and(|value| {
                            path.value.as_ref().is_none_or(|wanted| shown(value) == *wanted)
                        })
                    };
                    !found.is_empty() && found.iter().all(holds)
                }
                (None, None, Some(_), _) => !found.is_empty(),
                (None, None, None, Some(_)) => found.is_empty(),
                (None, None, None, None) => {
                    return Err(
                        "for: one of condition, creation, deletion and jsonPath must be given".to_owned(),
                    );
                }
            };
            if done {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(format!("not so within {limit:?}"));
            }
            self.pace.wait(seen, deadline).await;
        }
    }
}

/// A name that may be an expression in parentheses.
fn named(name: &str, bindings: &Bindings) -> Result<String, String> {
    Ok(match inner(name) {
        Some(expression) => shown(&evaluate(expression, &json!({}), bindings)?),
        None => name.to_owned(),
    })
}

/// Whether the outcome is the expected one; without an expectation that is success.
fn expected(
    expectations: &[Expectation],
    object: &Value,
    shown: &Value,
    error: &Value,
    scope: &Bindings,
) -> Result<bool, String> {
    let mut any = false;
    for expectation in expectations {
        let concerns = expectation
            .matches
            .as_ref()
            .is_none_or(|wanted| tree::check(wanted, object, scope).is_empty());
        if !concerns {
            continue;
        }
        any = true;
        let mut scope = scope.clone();
        scope.set("error", error.clone());
        let problems = tree::check(&expectation.check, shown, &scope);
        if !problems.is_empty() {
            let said = if error.is_null() {
                "it succeeded".to_owned()
            } else {
                format!("the server said: {error}")
            };
            return Err(format!("{}; {said}", problems.join("; ")));
        }
    }
    Ok(any)
}

/// Values taken from an outcome, by name.
fn outputs(outputs: &[Output], shown: &Value, scope: &Bindings) -> Result<Vec<(String, Value)>, String> {
    let mut scope = scope.clone();
    let mut taken = Vec::new();
    for output in outputs {
        let within = scope.clone().compiled_by(output.compiler);
        if output
            .matches
            .as_ref()
            .is_some_and(|wanted| !tree::check(wanted, shown, &within).is_empty())
        {
            continue;
        }
        let value = match output.value.as_str().and_then(inner) {
            Some(expression) => evaluate(expression, shown, &within)?,
            None => output.value.clone(),
        };
        let name = named(&output.name, &within)?;
        scope.set(&name, value.clone());
        taken.push((name, value));
    }
    Ok(taken)
}
