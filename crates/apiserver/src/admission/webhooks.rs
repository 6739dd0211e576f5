//! Asking webhooks: whom, in which order, and what their failures mean.

use super::client::Client;
use super::conditions::{ConditionError, Conditions, Inputs};
use super::endpoint::Endpoint;
use super::hook::{FailurePolicy, Hook, SideEffects};
use super::review::{Mode, ReviewVersion, Verdict, read_verdict, refusal, render_review, request_variable};
use super::{Attributes, Notes, Served, ServiceResolver, WebhookTransport, matching, patching};
use crate::field::go_quote;
use crate::offload::offload;
use crate::status::{ApiError, Subject};
use futures::future::join_all;
use serde_json::Value;
use std::borrow::{Borrow, Cow};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Checks and completes an object that a webhook changed, as decoding and defaulting would.
pub(crate) type AfterPatch<'a> = &'a (dyn Fn(&mut Value) -> Result<(), ApiError> + Sync);

/// What is done to an object beside what webhooks say.
#[derive(Clone, Copy)]
pub(crate) struct Steps<'a> {
    after_patch: AfterPatch<'a>,
    reinvoke: AfterPatch<'a>,
}

impl<'a> Steps<'a> {
    /// Nothing but checking and completing what a webhook changed.
    pub(crate) fn new(after_patch: AfterPatch<'a>) -> Self {
        Steps { after_patch, reinvoke: &|_| Ok(()) }
    }

    /// What had its say before webhooks has it again after the first of their rounds that changes anything.
    pub(crate) fn reinvoking(self, reinvoke: AfterPatch<'a>) -> Self {
        Steps { reinvoke, ..self }
    }
}

/// Gives a new UID each time.
pub(crate) type NewUid = Arc<dyn Fn() -> String + Send + Sync>;

/// The admission webhooks of one server.
pub(crate) struct Webhooks {
    client: Client,
    conditions: Arc<Conditions>,
    new_uid: NewUid,
}

/// How asking a webhook ends without a yes.
enum Failure {
    /// It gave no usable answer, which its failure policy may forgive.
    Call(String),
    /// The request is refused, whatever the policy.
    Refusal(ApiError),
}

impl Failure {
    /// The refusal of the request, or nothing if the webhook's policy is to ignore such a failure.
    fn judge(self, hook: &Hook<'_>) -> Result<(), ApiError> {
        let reason = match self {
            Failure::Refusal(refusal) => return Err(refusal),
            Failure::Call(reason) => reason,
        };
        let sentence = format!("failed calling webhook {}: {reason}", go_quote(hook.name));
        match hook.failure_policy() {
            FailurePolicy::Fail => Err(ApiError::internal(sentence)),
            FailurePolicy::Ignore => {
                tracing::warn!("{sentence}; ignored, as the webhook asks");
                Ok(())
            }
        }
    }
}

/// Which webhooks have to look again because another one changed the object after them.
#[derive(Default)]
struct Reinvocation {
    /// Those that were asked since the last change and want to look again after the next one.
    unaware: BTreeSet<usize>,
    due: BTreeSet<usize>,
    /// Any of them changed the object.
    changed: bool,
}

impl Reinvocation {
    fn note_change(&mut self) {
        self.changed = true;
        self.due.append(&mut self.unaware);
    }

    fn record(&mut self, index: usize, hook: &Hook<'_>, changed: bool) {
        if changed {
            self.note_change();
        }
        if hook.is_reinvocable() {
            self.unaware.insert(index);
        }
    }
}

impl Webhooks {
    pub(crate) fn new(
        resolver: Arc<dyn ServiceResolver>,
        transport: Option<Arc<dyn WebhookTransport>>,
        new_uid: NewUid,
    ) -> Self {
        Webhooks { client: Client::new(resolver, transport), conditions: Arc::default(), new_uid }
    }

    /// Asks the mutating webhooks and applies their patches to `object`, which is none for deletions.
    /// After a refusal `object` may hold some of the changes.
    pub(crate) async fn mutate<C: Borrow<Value> + Sync>(
        &self,
        configurations: &[C],
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
        steps: Steps<'_>,
        notes: &mut Notes,
    ) -> Result<(), ApiError> {
        if configurations.is_empty() || matching::is_exempt(attributes) {
            return Ok(());
        }
        let hooks = Hook::in_order(configurations);
        let mut again = Reinvocation::default();
        for is_second_round in [false, true] {
            if is_second_round && again.changed {
                reinvoke(object.as_deref_mut(), steps, &mut again)?;
            }
            if is_second_round && again.due.is_empty() {
                break;
            }
            for (index, hook) in hooks.iter().enumerate() {
                let Some(form) = self.wanted_form(hook, attributes, object.as_deref(), old).await? else {
                    continue;
                };
                // Who was not asked in the first round is not asked in the second.
                if is_second_round && !again.due.contains(&index) {
                    continue;
                }
                let asked = self.mutate_once(hook, attributes, form, object.as_deref(), old, notes).await;
                let changed = match asked {
                    Ok(None) => false,
                    Ok(Some(mut patched)) => match object.as_deref_mut() {
                        Some(object) => {
                            let changed = *object != patched;
                            (steps.after_patch)(&mut patched)?;
                            *object = patched;
                            changed
                        }
                        None => false,
                    },
                    Err(failure) => {
                        failure.judge(hook)?;
                        false
                    }
                };
                again.record(index, hook, changed);
            }
        }
        Ok(())
    }

    /// Asks the validating webhooks, all at once. `object` is none for deletions.
    pub(crate) async fn validate<C: Borrow<Value> + Sync>(
        &self,
        configurations: &[C],
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
        notes: &mut Notes,
    ) -> Result<(), ApiError> {
        if configurations.is_empty() || matching::is_exempt(attributes) {
            return Ok(());
        }
        let mut wanted = Vec::new();
        for hook in Hook::in_order(configurations) {
            if let Some(form) = self.wanted_form(&hook, attributes, object, old).await? {
                wanted.push((hook, form));
            }
        }
        let asked =
            wanted.iter().map(|(hook, form)| self.validate_once(hook, attributes, *form, object, old));
        let mut answer = Ok(());
        for (verdict, said) in join_all(asked).await {
            notes.absorb(said);
            answer = answer.and(verdict);
        }
        answer
    }

    async fn validate_once(
        &self,
        hook: &Hook<'_>,
        attributes: &Attributes<'_>,
        form: Served<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> (Result<(), ApiError>, Notes) {
        let mut notes = Notes::default();
        let (object, old) = match in_form(attributes, form, object, old) {
            Ok(objects) => objects,
            Err(error) => return (Err(error), notes),
        };
        let asked = self.ask(hook, attributes, form, (object.as_deref(), old.as_deref()), Mode::Validating);
        let verdict = asked.await.and_then(|verdict| read_out(hook, verdict, &mut notes));
        (verdict.map(drop).or_else(|failure| failure.judge(hook)), notes)
    }

    async fn wanted_form<'a>(
        &self,
        hook: &Hook<'_>,
        attributes: &Attributes<'a>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Option<Served<'a>>, ApiError> {
        let Some(form) = matching::wanted_form(hook, attributes, object, old)? else {
            return Ok(None);
        };
        let conditions = hook.match_conditions();
        if conditions.is_empty() {
            return Ok(Some(form));
        }
        let (object, old) = in_form(attributes, form, object, old)?;
        let request = request_variable(attributes, form).map_err(ApiError::internal)?;
        let inputs = Inputs { object: object.map(Cow::into_owned), old: old.map(Cow::into_owned), request };
        let (known, conditions, policy) =
            (self.conditions.clone(), conditions.to_vec(), hook.failure_policy());
        let hold = move |cancelled: &AtomicBool| known.hold(&conditions, policy, &inputs, cancelled);
        match Box::pin(offload(hold)).await {
            Ok(hold) => Ok(hold.then_some(form)),
            Err(ConditionError::Authorizer) => {
                Err(ApiError::not_implemented(&ConditionError::Authorizer.to_string()))
            }
            Err(ConditionError::Failed(why)) => {
                let subject =
                    Subject { group: attributes.resource.group, kind: attributes.resource.resource };
                Err(ApiError::forbidden(&subject, attributes.name, &why))
            }
        }
    }

    /// The object as the webhook patched it, in the request's version; none if it wants no change.
    async fn mutate_once(
        &self,
        hook: &Hook<'_>,
        attributes: &Attributes<'_>,
        form: Served<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
        notes: &mut Notes,
    ) -> Result<Option<Value>, Failure> {
        let (object, old) = in_form(attributes, form, object, old).map_err(Failure::Refusal)?;
        let objects = (object.as_deref(), old.as_deref());
        let verdict = self.ask(hook, attributes, form, objects, Mode::Mutating).await?;
        let verdict = read_out(hook, verdict, notes)?;
        if verdict.patch.is_empty() {
            return Ok(None);
        }
        let patch = patching::decode(&verdict.patch)
            .map_err(|why| Failure::Call(format!("received undecodable patch in webhook response: {why}")))?;
        if patching::is_empty(&patch) {
            return Ok(None);
        }
        let internal = |why: String| Failure::Refusal(ApiError::internal(why));
        let Some(object) = objects.0 else {
            return Err(internal(format!(
                "admission webhook {} attempted to modify the object, which is not supported for this operation",
                go_quote(hook.name)
            )));
        };
        let patch_type = verdict.patch_type.unwrap_or_default();
        if patch_type != "JSONPatch" {
            return Err(Failure::Call(format!("unsupported patch type {}", go_quote(&patch_type))));
        }
        let patched = patching::apply(object, &patch).map_err(internal)?;
        if form.kind == attributes.kind {
            return Ok(Some(patched));
        }
        (attributes.equivalents.convert)(&patched, attributes.kind).map(Some).map_err(Failure::Refusal)
    }

    /// Sends one review and reads the verdict.
    async fn ask(
        &self,
        hook: &Hook<'_>,
        attributes: &Attributes<'_>,
        form: Served<'_>,
        (object, old): (Option<&Value>, Option<&Value>),
        mode: Mode,
    ) -> Result<Verdict, Failure> {
        if attributes.dry_run {
            match hook.side_effects() {
                SideEffects::None => {}
                SideEffects::Unset => return Err(Failure::Call("Webhook SideEffects is nil".to_owned())),
                SideEffects::Possible => {
                    let name = go_quote(hook.name);
                    let sentence = format!("admission webhook {name} does not support dry run");
                    return Err(Failure::Refusal(ApiError::bad_request(sentence)));
                }
            }
        }
        let uncreated =
            |why: &dyn std::fmt::Display| Failure::Call(format!("could not create admission objects: {why}"));
        let version = ReviewVersion::first_known(hook.review_versions()).ok_or_else(|| {
            uncreated(&"webhook does not accept known AdmissionReview versions (v1, v1beta1)")
        })?;
        let uid = (self.new_uid)();
        let review =
            render_review(version, &uid, attributes, form, object, old).map_err(|error| uncreated(&error))?;
        let no_client = |why: String| Failure::Call(format!("could not get REST client: {why}"));
        let endpoint = Endpoint::of(hook.client_config()).map_err(no_client)?;
        let peer = self.client.peer(&endpoint).map_err(no_client)?;
        let uncalled = |why: String| Failure::Call(format!("failed to call webhook: {why}"));
        let reply =
            self.client.post(&peer, &endpoint, review.into(), hook.timeout()).await.map_err(uncalled)?;
        let review = reply.read_review(version).map_err(uncalled)?;
        read_verdict(&review, version, &uid, mode).map_err(|error| Failure::Call(error.to_string()))
    }
}

/// Lets those before the webhooks have their say again; webhooks that want to know of a change learn of theirs.
fn reinvoke(object: Option<&mut Value>, steps: Steps<'_>, again: &mut Reinvocation) -> Result<(), ApiError> {
    let Some(object) = object else { return Ok(()) };
    let before = object.clone();
    (steps.reinvoke)(object)?;
    if *object != before {
        again.note_change();
    }
    Ok(())
}

/// Takes note of what was said, and turns a no into the refusal.
fn read_out(hook: &Hook<'_>, verdict: Verdict, notes: &mut Notes) -> Result<Verdict, Failure> {
    notes.warnings.extend_from_slice(&verdict.warnings);
    let annotations = verdict.annotations.iter();
    notes.annotations.extend(annotations.map(|(key, value)| (format!("{}/{key}", hook.name), value.clone())));
    if verdict.allowed {
        Ok(verdict)
    } else {
        Err(Failure::Refusal(refusal(hook.name, verdict.status.as_ref())))
    }
}

/// The objects in the version that a webhook wants to see.
#[expect(clippy::type_complexity, reason = "the two objects of a request, as everywhere here")]
fn in_form<'v>(
    attributes: &Attributes<'_>,
    form: Served<'_>,
    object: Option<&'v Value>,
    old: Option<&'v Value>,
) -> Result<(Option<Cow<'v, Value>>, Option<Cow<'v, Value>>), ApiError> {
    let convert = |object: &'v Value| {
        if form.kind == attributes.kind {
            Ok(Cow::Borrowed(object))
        } else {
            (attributes.equivalents.convert)(object, form.kind).map(Cow::Owned)
        }
    };
    Ok((object.map(convert).transpose()?, old.map(convert).transpose()?))
}
