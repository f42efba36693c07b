package outputschema

// CompilePattern compiles a pattern of ECMAScript.
var CompilePattern = newPattern

// MaxSteps is the bound of Check.
const MaxSteps = maxSteps

// CheckWithin is Check with fewer steps.
var CheckWithin = (*Schema).checkWithin
