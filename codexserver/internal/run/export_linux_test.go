package run

import "os"

// EndAll ends what a launcher would if it took each process for one of its command. The caller is the first process of a
// PID namespace: this ends all other processes of the user that began after the launcher.
func EndAll(launcher int) {
	p, ok := readProcess(launcher)
	if !ok || os.Getpid() != 1 {
		panic("not in a PID namespace")
	}
	end(func() []process { return p.command(func(process) bool { return true }) })
}
