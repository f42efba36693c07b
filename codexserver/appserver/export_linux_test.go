package appserver

import "path/filepath"

// Left returns the processes that the last app-server left behind.
func (e *Engine) Left() []string {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var left []string
	for _, dir := range dirs {
		if hasEnv(dir, []byte(e.launch.child.mark)) {
			left = append(left, dir)
		}
	}
	return left
}
