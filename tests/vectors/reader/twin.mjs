// What was read, in the form of a vector's twin.
import { isObject } from './member.mjs';
import { episodeOf } from './name.mjs';
import { Text } from './text.mjs';

export function twinOf(checkpoint, lives) {
  const { checkpointId: id, sequence, cut, episodes, restarts, marks, participants } = checkpoint;
  return {
    checkpoint: {
      id,
      sequence,
      cut: cut === null ? null : cut.name,
      episodes,
      restarts,
      marks: Object.fromEntries(marks),
      state: valueTwin(checkpoint.state),
    },
    participants: Object.fromEntries(participants.map(({ name, kind, records }) => (
      [name, { kind, records: records.map(recordTwin) }]
    ))),
    lives: lives.map(({ life, source }) => ({ life, source_checkpoint_id: source })),
  };
}

// A twin's file as it was parsed, with plain objects, as the order of their members says nothing.
export function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  return isObject(value) ? Object.fromEntries(value.entries().map(([key, item]) => [key, plain(item)])) : value;
}

function recordTwin({ episode, boundary, schema, references, payload }) {
  return { episode, ...episodeOf(episode), boundary, schema, references, payload: valueTwin(payload) };
}

function valueTwin(value) {
  if (typeof value === 'bigint') return { int: String(value) };
  if (typeof value === 'number') return { float: floatTwin(value) };
  if (value instanceof Text) return { str: value.points.map(BigInt) };
  if (Array.isArray(value)) return { list: value.map(valueTwin) };
  if (isObject(value)) return { dict: value.entries().map(([key, item]) => [valueTwin(key), valueTwin(item)]) };
  return value;
}

function floatTwin(number) {
  if (Number.isNaN(number)) return 'nan';
  if (!Number.isFinite(number)) return number > 0 ? 'inf' : '-inf';
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(number);
  return bytes.toString('hex');
}
