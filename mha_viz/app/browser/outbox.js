// @ts-check
// Choices on their way to Python. Each carries a sequence number, and Python answers with the
// newest one it has seen, so that a late answer never overwrites a newer choice.

/** @import { SetState } from "./component.js" */

export class Outbox {
  /**
   * @param {SetState} setState
   * @param {string} state the name under which Python reads the choice
   * @param {number} [pace] minimum milliseconds between two choices; the last one is always sent
   */
  constructor(setState, state, pace = 0) {
    this.setState = setState;
    this.state = state;
    this.pace = pace;
    this.newest = 0;
    this.lastSent = -Infinity;
    /** @type {object} */
    this.choice = {};
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /**
   * @param {object} choice
   * @param {number} [rest] milliseconds without another choice, where one follows the other quickly
   */
  send(choice, rest = 0) {
    this.newest += 1;
    this.choice = { ...choice, seq: this.newest };
    let wait = this.pace - (performance.now() - this.lastSent);
    if (rest && (this.timer !== undefined || wait > 0)) wait = rest;
    clearTimeout(this.timer);
    this.timer = undefined;
    if (wait > 0) this.timer = setTimeout(() => this.deliver(), wait);
    else this.deliver();
  }

  deliver() {
    this.timer = undefined;
    this.lastSent = performance.now();
    this.setState(this.state, this.choice);
  }

  /**
   * Whether Python has seen the newest choice, so that its values are up to date.
   * @param {number} seen the sequence number that Python answers with
   */
  upToDate(seen) {
    if (seen < this.newest) return false;
    this.newest = seen;
    return true;
  }

  destroy() {
    clearTimeout(this.timer);
  }
}
