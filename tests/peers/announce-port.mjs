// Preloaded into a server that does not say which free port it got: prints `listening on port N` on standard error.
import http from "node:http";

const listen = http.Server.prototype.listen;
http.Server.prototype.listen = function (...args) {
  this.once("listening", () => console.error(`listening on port ${this.address().port}`));
  return listen.apply(this, args);
};
