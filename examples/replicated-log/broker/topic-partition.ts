/** A partition by its name: what operations are watched under. */
export interface TopicPartition {
  readonly topic: string;
  readonly index: number;
}

/** For `keyOf`: two objects that name the same partition are the same key. */
export function partitionKey({ topic, index }: TopicPartition): string {
  return `${topic}-${index}`;
}
