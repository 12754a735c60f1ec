/** The versions of asynq that are compared with; 0.26 has brought headers, and reads scores in another way. */
export const GO_VERSIONS = ['0.25.1', '0.26.0'] as const;

export type GoVersion = (typeof GO_VERSIONS)[number];
