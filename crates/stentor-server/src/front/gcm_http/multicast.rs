//! `send`: the recipients of a request, one message for each, and the results.

use super::content;
use super::groups;
use super::reply::{GcmError, SendReply, TokenResult, id_number, of_tokens};
use super::request::{LegacySendRequest, SendTarget};
use crate::contract::messages::{MessageRequest, Sent, TargetRequest};
use crate::contract::{Problem, ServiceResult};
use crate::front::sending::{DEFAULT_ROUTE, Sender, TokenStanding, id_text, is_of_server};

/// Sends the message of a request.
pub(super) async fn send(sender: &Sender<'_>, mut request: LegacySendRequest) -> ServiceResult<SendReply> {
    let send_target = request.send_target()?;
    // With tokens a malformed message is not refused: each token fails in a reply of 200.
    let draft = content::draft(&request);
    match (send_target, draft) {
        (SendTarget::Missing, _) => Ok(of_tokens(vec![failed(GcmError::MissingRegistration)])),
        (SendTarget::Tokens(tokens), Ok(draft)) => {
            to_tokens(sender, &tokens, &content::with_receipt(draft, sender.receipt)).await
        }
        (SendTarget::Tokens(tokens), Err(error)) => {
            Ok(of_tokens(tokens.iter().map(|_| failed(error)).collect()))
        }
        (SendTarget::Topic(topic), Ok(draft)) => {
            to_audience(sender, TargetRequest::Topic(topic), draft).await
        }
        (SendTarget::Condition(text), Ok(draft)) => {
            to_audience(sender, TargetRequest::Condition(text), draft).await
        }
        (SendTarget::Group(key), Ok(draft)) => groups::send(sender, &key, draft).await,
        (SendTarget::Topic(_) | SendTarget::Condition(_) | SendTarget::Group(_), Err(error)) => {
            Ok(SendReply::Refused { error: error.as_str() })
        }
    }
}

async fn to_tokens(
    sender: &Sender<'_>,
    tokens: &[String],
    draft: &MessageRequest,
) -> ServiceResult<SendReply> {
    let standings = sender.standings(tokens, DEFAULT_ROUTE).await?;
    let known: Vec<_> = standings.iter().map(KnownToken::of).collect();
    let targets = standings.into_iter().map(|standing| standing.target(DEFAULT_ROUTE)).collect();
    // Targets and states of the tokens run in parallel, in the order of the request.
    let sent = sender.send_each(0, targets, draft).await?;
    refuse_when_the_server_kept_nothing(&sent)?;
    let results = known.into_iter().zip(sent).map(|(known, sent)| result(known, sent));
    Ok(of_tokens(results.collect::<ServiceResult<_>>()?))
}

/// Fails if no message was stored because of the server, so that the whole request may be repeated.
fn refuse_when_the_server_kept_nothing(sent: &[Option<ServiceResult<Sent>>]) -> ServiceResult<()> {
    let mut refusals = sent.iter().flatten().filter_map(|sent| sent.as_ref().err());
    let any_accepted = sent.iter().flatten().any(Result::is_ok);
    match refusals.find(|problem| is_of_server(problem.code)) {
        Some(problem) if !any_accepted => Err(problem.clone()),
        _ => Ok(()),
    }
}

const fn unreachable(standing: &TokenStanding) -> GcmError {
    match standing {
        TokenStanding::Retired(_) => GcmError::NotRegistered,
        TokenStanding::Invalid
        | TokenStanding::Unknown(_)
        | TokenStanding::Held(_)
        | TokenStanding::Replaced(_) => GcmError::InvalidRegistration,
    }
}

/// The reply to a token, as far as it is known before the sending.
struct KnownToken {
    /// The error, where nothing is sent.
    error: GcmError,
    /// The token that the device has now, where it is another.
    registration_id: Option<String>,
}

impl KnownToken {
    fn of(standing: &TokenStanding) -> Self {
        Self { error: unreachable(standing), registration_id: standing.canonical() }
    }
}

fn result(known: KnownToken, sent: Option<ServiceResult<Sent>>) -> ServiceResult<TokenResult> {
    let KnownToken { error, registration_id } = known;
    match sent {
        None => Ok(failed(error)),
        Some(Ok(sent)) => Ok(TokenResult::Sent { message_id: id_text(&sent), registration_id }),
        Some(Err(problem)) => GcmError::of(&problem).map(failed).ok_or(problem),
    }
}

const fn failed(error: GcmError) -> TokenResult {
    TokenResult::Failed { error: error.as_str() }
}

async fn to_audience(
    sender: &Sender<'_>,
    target: TargetRequest,
    draft: MessageRequest,
) -> ServiceResult<SendReply> {
    match sender.send(0, MessageRequest { target, ..draft }).await {
        Ok(sent) => Ok(SendReply::Audience { message_id: id_number(&sent) }),
        Err(problem) => refused(problem),
    }
}

/// Converts a refusal of one message into a reply, if the API has a word for it.
pub(super) fn refused(problem: Problem) -> ServiceResult<SendReply> {
    match GcmError::of(&problem) {
        // An error of the server becomes a status, after which the client retries; an error word in a reply ends the message.
        Some(error) if !is_of_server(problem.code) => Ok(SendReply::Refused { error: error.as_str() }),
        _ => Err(problem),
    }
}
