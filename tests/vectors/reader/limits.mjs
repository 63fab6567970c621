const MiB = 1024 * 1024;
const GiB = 1024 * MiB;

export const NESTING = 250;
export const VALUES = 67_108_864;
export const LINE = GiB;
export const FRAME_PLAIN = GiB;
export const FRAME_STORED = GiB + 16 * MiB;
export const WINDOW = 128 * MiB;
export const SMALL_FILE = 64 * MiB; // manifest, cut, life
export const CHECKPOINT_FILE = GiB;
export const INDEX_FILE = 4 * GiB;
export const INDEX_HEAD = 16 * MiB;
export const BLOCK_ROWS = 4096;
export const BLOCK_BYTES = 2 * MiB;
