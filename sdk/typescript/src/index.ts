export { verifyWebhook, WebhookError } from './verify-webhook.js';
export type {
  Jwks, Suite, VerifyOptions, WebhookErrorCode, WebhookEvent, WebhookHeaders,
} from './verify-webhook.js';
