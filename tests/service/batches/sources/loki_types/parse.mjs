// Tell of each query, given as JSON, whether Grafana's own grammar of LogQL reads it without an error.
import { readFileSync } from "node:fs";
import { parser } from "@grafana/lezer-logql";

const read = (query) => {
  let isWhole = true;
  parser.parse(query).iterate({ enter: (node) => { isWhole &&= !node.type.isError; } });
  return isWhole;
};
process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf-8")).map(read)));
