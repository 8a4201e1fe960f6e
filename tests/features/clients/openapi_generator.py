"""Uses the client that openapi-generator generates for Python."""

import json
import os
from uuid import uuid4

from openapi_client import ApiClient, Configuration
from openapi_client.api.approval_api import ApprovalApi
from openapi_client.api.principal_api import PrincipalApi
from openapi_client.api.runtime_api import RuntimeApi
from openapi_client.models.app_approve_approval_request import AppApproveApprovalRequest
from openapi_client.models.decision_update import DecisionUpdate
from openapi_client.models.evaluate_request_input import EvaluateRequestInput
from openapi_client.models.principal_input import PrincipalInput


def client(token):
    return ApiClient(Configuration(host=os.environ["URL"], access_token=os.environ[token]))


principal = PrincipalInput(tenant_id="svc:tenant:acme", principal_class="agent", name=f"bot-{uuid4().hex[:8]}", display_name="Bot")
created = PrincipalApi(client("OWNER")).create_principal(principal).principal
print("created", created.principal_class.value)

runtime = RuntimeApi(client("KEY"))
request = EvaluateRequestInput(
    subject="svc:agent:acme:invoice-bot",
    action="payment.execute",
    purpose="invoice-settlement",
    context={"amount": 25000.5, "currency": "EUR", "jurisdiction": "DE"},
)
held = runtime.evaluate(request)
print("decided", held.decision, held.reason_code)

approvals = ApprovalApi(client("APPROVER"))
digest = approvals.app_get_approval(held.approval_id).approval.request_digest
approve = AppApproveApprovalRequest(comment="The invoice is right.", request_digest=digest)
approved = approvals.app_approve_approval(held.approval_id, app_approve_approval_request=approve)
print("approved", approved.approval.state.value)

stream = runtime.gateway_watch_decision_without_preload_content(held.decision_id)
first = DecisionUpdate.from_dict(json.loads(stream.readline()))
print("streamed", first.decision.value, first.approval_state)
