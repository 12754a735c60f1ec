/** Names of attributes: OpenTelemetry's conventions for messaging, 1.27 and later, and ours for what they have no word for. */
export const ATTRIBUTE = {
  system: 'messaging.system',
  operationName: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
  /** The queue. */
  destination: 'messaging.destination.name',
  messageId: 'messaging.message.id',
  errorType: 'error.type',
  taskType: 'escapement.task.type',
  /** Failures before this run. */
  retryCount: 'escapement.task.retry_count',
  maxRetry: 'escapement.task.max_retry',
  /** Its handler has thrown RevokeTask. */
  isRevoked: 'escapement.task.revoked',
} as const;
