package outputschema

// CompilePattern compiles a pattern of ECMAScript.
var CompilePattern = newPattern
