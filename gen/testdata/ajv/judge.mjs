// Judges the instances in a file with ajv, and prints each whose verdict differs from the one that is there.
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import Ajv from "ajv";
import Ajv2019 from "ajv/dist/2019.js";
import Ajv2020 from "ajv/dist/2020.js";
import Ajv04 from "ajv-draft-04";
import draft6 from "ajv/dist/refs/json-schema-draft-06.json" with { type: "json" };

const [folder, file] = process.argv.slice(2);
const options = { strict: false, validateFormats: false, validateSchema: false, addUsedSchema: false, logger: false };
const validators = new Map();

function validator(name, pointer) {
  const key = name + pointer;
  if (!validators.has(key)) {
    const schema = JSON.parse(fs.readFileSync(path.join(folder, name + ".json"), "utf8"));
    const draft = schema.$schema ?? "";
    const Kind = /draft-04/.test(draft) ? Ajv04 : /draft-0[67]/.test(draft) ? Ajv : /2019-09/.test(draft) ? Ajv2019 : Ajv2020;
    const ajv = new (Kind.default ?? Kind)(options);
    if (/draft-06/.test(draft)) ajv.addMetaSchema(draft6);
    delete schema.id;
    delete schema.$id;
    ajv.addSchema(schema, "schema:" + name);
    validators.set(key, ajv.compile({ $ref: "schema:" + name + encodeURI(pointer) }));
  }
  return validators.get(key);
}

let total = 0;
for await (const line of readline.createInterface({ input: fs.createReadStream(file) })) {
  const { schema, pointer, accepted, instance } = JSON.parse(line);
  let valid, why;
  try {
    const validate = validator(schema, pointer);
    valid = validate(JSON.parse(instance));
    why = validate.errors?.map((e) => `${e.instancePath} ${e.message}`).join("; ") ?? "valid";
  } catch (e) {
    why = String(e);
  }
  total++;
  if (valid !== accepted) console.log(JSON.stringify({ schema, pointer, accepted, instance: instance.slice(0, 2000), why: why.slice(0, 500) }));
}
console.log(JSON.stringify({ total }));
