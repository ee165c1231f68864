//! Asking the person at the client.

use std::sync::Arc;

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    Content, ContentBlock, PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use async_trait::async_trait;
use session::SessionId;
use user_approval::{Answer, Answerer, Question};

use crate::view::Feed;

const ALLOW: &str = "allow";
const REJECT: &str = "reject";

/// Answers for one session, over its connection.
pub(crate) struct Asker {
    pub(crate) session: SessionId,
    pub(crate) connection: ConnectionTo<Client>,
    pub(crate) feed: Arc<Feed>,
}

#[async_trait]
impl Answerer for Asker {
    fn owns(&self, session: SessionId) -> bool {
        self.session == session
    }

    async fn answer(&self, question: &Question) -> Option<Answer> {
        let asked = &question.asked;
        // The client has seen the call before it is asked about it.
        self.feed.shown(asked.request_id.0).await;
        let operation = asked.reason.as_deref().unwrap_or(&asked.tool);
        let mut text = format!("{} asks to {operation}", asked.tool);
        if let Some(why) = &asked.justification {
            text = format!("The model says: \"{why}\"\n\n{text}");
        }
        let call_id = asked.call_id.as_deref().unwrap_or("none").to_owned();
        let content = vec![ToolCallContent::Content(Content::new(ContentBlock::from(text)))];
        let title = format!("{}: {operation}", asked.tool);
        let fields = ToolCallUpdateFields::new().title(title).status(ToolCallStatus::Pending).content(content);
        let options = vec![
            PermissionOption::new(ALLOW, "Allow this once", PermissionOptionKind::AllowOnce),
            PermissionOption::new(REJECT, "Reject", PermissionOptionKind::RejectOnce),
        ];
        let request =
            RequestPermissionRequest::new(question.session.to_string(), ToolCallUpdate::new(call_id, fields), options);
        // Dropping it tells the client that nobody waits any more.
        let answer = self.connection.send_request(request).block_task().await.ok()?;
        match answer.outcome {
            RequestPermissionOutcome::Selected(chosen) if &*chosen.option_id.0 == ALLOW => Some(Answer::AllowOnce),
            RequestPermissionOutcome::Selected(chosen) if &*chosen.option_id.0 == REJECT => Some(Answer::Reject),
            _ => None,
        }
    }
}
