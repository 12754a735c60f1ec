/** Where Redis Cluster puts a key. */

export const SLOTS = 16_384;

/** CRC-16 as XMODEM has it, which is what the Redis Cluster specification asks for. */
const POLYNOMIAL = 0x10_21;

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80_00) === 0 ? crc << 1 : (crc << 1) ^ POLYNOMIAL;
  return crc;
});

const encoder = new TextEncoder();

export function crc16(text: string): number {
  let crc = 0;
  for (const byte of encoder.encode(text)) {
    crc = ((crc << 8) & 0xff_ff) ^ (TABLE[(crc >>> 8) ^ byte] as number);
  }
  return crc;
}

/** Of what is between the first `{` and the `}` after it, if that is anything; else of the whole key. */
export function slotOfKey(key: string): number {
  const open = key.indexOf('{');
  const close = open === -1 ? -1 : key.indexOf('}', open + 1);
  return crc16(close > open + 1 ? key.slice(open + 1, close) : key) % SLOTS;
}

/** Every key of a queue has its name as the hash tag. */
export function slotOfQueue(queue: string): number {
  return slotOfKey(`asynq:{${queue}}:pending`);
}

/** Shards that have been given equal ranges of slots, as `redis-cli --cluster create` does. */
export function shardOfSlot(slot: number, shards: number): number {
  return Math.min(Math.floor((slot * shards) / SLOTS), shards - 1);
}
