// Package enginetest holds an engine against the promises of package engine:
//
//	func TestEngine(t *testing.T) {
//		enginetest.Run(t, func(t *testing.T) *enginetest.Subject {
//			…
//			return &enginetest.Subject{Engine: e, Config: cfg, Script: script}
//		})
//	}
//
// The engine's model is scripted by the caller of Run: Script says what it does
// next, a [Step] for each of its answers. The suite runs commands of the POSIX
// shell in a folder of its own.
package enginetest
