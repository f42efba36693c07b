// Package sandbox confines commands to what a sandbox policy allows.
//
//	Sandbox.Confine(policy, cwd, env) ──▶ Confinement ──▶ Start(cmd), Do(f)
package sandbox
