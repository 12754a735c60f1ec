/** Answers a request, once: a second answer, or one to a client that hung up, goes nowhere. */
export type Reply = (status: number, body: object) => void;
