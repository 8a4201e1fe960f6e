"""Uses the client that openapi-python-client generates."""

import json
import os
from uuid import uuid4

from agent_authority_client import AuthenticatedClient
from agent_authority_client.api.approval import app_approve_approval, app_get_approval
from agent_authority_client.api.principal import create_principal
from agent_authority_client.api.runtime import evaluate, gateway_watch_decision
from agent_authority_client.models import (
    AppApproveApprovalBody,
    DecisionUpdate,
    EvaluateRequestInput,
    EvaluateRequestInputContextType0,
    PrincipalPrincipalClass,
    PrincipalInput,
)


def client(token):
    return AuthenticatedClient(base_url=os.environ["URL"], token=os.environ[token])


principal = PrincipalInput(tenant_id="svc:tenant:acme", principal_class=PrincipalPrincipalClass.AGENT, name=f"bot-{uuid4().hex[:8]}", display_name="Bot")
created = create_principal.sync(client=client("OWNER"), body=principal).principal
print("created", created.principal_class.value)

context = EvaluateRequestInputContextType0.from_dict({"amount": 25000.5, "currency": "EUR", "jurisdiction": "DE"})
request = EvaluateRequestInput(
    subject="svc:agent:acme:invoice-bot", action="payment.execute", purpose="invoice-settlement", context=context
)
held = evaluate.sync(client=client("KEY"), body=request)
print("decided", held.decision.value, held.reason_code)

approver = client("APPROVER")
digest = app_get_approval.sync(held.approval_id, client=approver).approval.request_digest
approve = AppApproveApprovalBody(comment="The invoice is right.", request_digest=digest)
approved = app_approve_approval.sync(held.approval_id, client=approver, body=approve)
print("approved", approved.approval.state.value)

# The generated functions read a response to its end. A stream has to be read from the HTTP client.
watch = gateway_watch_decision._get_kwargs(held.decision_id)
with client("KEY").get_httpx_client().stream(**watch) as stream:
    first = DecisionUpdate.from_dict(json.loads(next(stream.iter_lines())))
print("streamed", first.decision.value, first.approval_state)
