package tools

import "slices"

// allLocked returns the locked arguments with those that would say again what they
// keep a call from saying: config could search the web and, with the sandbox
// open to the call, make folders writable.
func allLocked(names []string) []string {
	all := slices.Clone(names)
	if slices.Contains(names, "config") {
		all = append(all, "web-search")
		if slices.Contains(names, "sandbox") {
			all = append(all, "writable-roots")
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// lockedOf are those of the names that codex-reply has too.
func lockedOf(names []string) []string {
	var own []string
	for _, name := range names {
		if slices.Contains(turnNames, name) {
			own = append(own, name)
		}
	}
	return own
}
