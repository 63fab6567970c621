// How rows tile frames, and frames their segments.
import { FRAME_PLAIN, FRAME_STORED, LINE } from './limits.mjs';
import { damaged } from './refusal.mjs';

// For each segment its frames in order, each with its rows in order.
export function layoutOf(segments, rows) {
  const layout = segments.map(() => []);
  for (const row of [...rows].sort(byPlace)) {
    const frames = layout[row.segment];
    if (frames === undefined) throw damaged(`no segment ${row.segment}`);
    const last = frames.at(-1);
    if (last?.offset === row.offset && last.stored === row.stored) {
      last.rows.push(row);
    } else {
      frames.push({ offset: row.offset, stored: row.stored, plain: 0, rows: [row] });
    }
  }
  segments.forEach((segment, i) => checkSegment(segment, layout[i]));
  return layout;
}

const byPlace = (a, b) => a.segment - b.segment || a.offset - b.offset || a.start - b.start;

function checkSegment(segment, frames) {
  let at = 0;
  let plain = 0;
  let records = 0;
  for (const frame of frames) {
    if (frame.offset !== at) throw damaged('frames do not tile their segment');
    checkFrame(frame, segment.codec);
    at += frame.stored;
    plain += frame.plain;
    records += frame.rows.length;
  }
  if (at !== segment.stored || plain !== segment.plain || records !== segment.records) {
    throw damaged('the rows of a segment do not give what its manifest says');
  }
}

function checkFrame(frame, codec) {
  for (const row of frame.rows) {
    if (row.start !== frame.plain) throw damaged('lines do not tile their frame');
    if (row.length < 1 || row.length > LINE) throw damaged(`a line of ${row.length} bytes`);
    frame.plain += row.length;
  }
  if (codec === 'none' && (frame.rows.length !== 1 || frame.plain !== frame.stored)) {
    throw damaged('a line without compression is a frame of its own');
  }
  if (frame.stored < 1 || frame.stored > FRAME_STORED || frame.plain > FRAME_PLAIN) throw damaged('a frame too large');
}
