import { createHash } from 'node:crypto';

export const digestOf = (bytes) => createHash('sha256').update(bytes).digest('hex');
