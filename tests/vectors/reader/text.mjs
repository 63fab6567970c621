// A string with surrogates, by its code points: a JavaScript string would merge two of them into one character.
export class Text {
  constructor(points) {
    this.points = points;
  }
}

const isSurrogate = (point) => point >= 0xd800 && point <= 0xdfff;

export function textOf(points) {
  if (points.some(isSurrogate)) return new Text(points);
  return points.map((point) => String.fromCodePoint(point)).join('');
}
