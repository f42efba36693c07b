package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

const (
	starts  = 25
	clients = 4
	// idle is how long clients wait before their memory is measured. They give back what the
	// start took after two seconds.
	idle = 6 * time.Second
)

// sharing measures clients that have a server each, and clients that share one: the median
// of their starts while another client is connected, and the memory of four idle ones.
func sharing(ctx context.Context, program string) error {
	var took, sums [2]float64
	var relay float64
	for i, flags := range [][]string{nil, {"--shared"}} {
		argv := append([]string{program, "--engine", "native"}, flags...)
		home, err := os.MkdirTemp("", "compare-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(home)
		environ := append(os.Environ(), "CODEX_HOME="+home)
		control := func(words ...string) (string, error) {
			cmd := exec.CommandContext(ctx, program, append([]string{"shared"}, words...)...)
			cmd.Env = environ
			out, err := cmd.Output()
			return string(out), err
		}
		defer control("stop")
		var all []*server
		defer func() {
			for _, s := range all {
				s.close()
			}
		}()
		client := func() (*server, error) {
			s := &server{home: home, provider: providertest.New(), cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
			s.cmd.Env = environ
			all = append(all, s)
			return s, s.start()
		}
		// Each has the provider of the first, whose address is in the configuration.
		if _, err := client(); err != nil {
			return err
		}
		var times []float64
		for range starts {
			s, err := client()
			if err != nil {
				return err
			}
			times = append(times, s.took.Seconds()*1e3)
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
		slices.Sort(times)
		took[i] = times[starts/2]
		pids := []int{all[0].cmd.Process.Pid}
		for range clients - 1 {
			s, err := client()
			if err != nil {
				return err
			}
			pids = append(pids, s.cmd.Process.Pid)
		}
		shown, err := control()
		if err != nil {
			return err
		}
		if _, rest, ok := strings.Cut(shown, ": process "); ok {
			var pid int
			if _, err := fmt.Sscan(strings.TrimSuffix(strings.Fields(rest)[0], ","), &pid); err != nil {
				return err
			}
			pids = append(pids, pid)
		}
		if len(pids) != clients+i {
			return errors.New("the clients do not share a server")
		}
		time.Sleep(idle)
		for n, pid := range pids {
			kB, err := proportional(pid)
			if err != nil {
				return err
			}
			sums[i] += kB / 1024
			if i == 1 && n < clients {
				relay = max(relay, kB/1024)
			}
		}
	}
	fmt.Printf("%-32s %8s %8s\n", "", "each", "shared")
	fmt.Printf("%-32s %8.2f %8.2f   ratio %.2f\n", "start to initialize, ms", took[0], took[1], took[1]/took[0])
	fmt.Printf("%-32s %8.2f %8.2f   ratio %.2f\n", fmt.Sprintf("PSS of %d idle clients, MiB", clients), sums[0],
		sums[1], sums[1]/sums[0])
	fmt.Printf("%-32s %8s %8.2f\n", "PSS of the largest relay, MiB", "", relay)
	return nil
}

// proportional returns the proportional set size of a process in KiB.
func proportional(pid int) (kB float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			_, err := fmt.Sscan(value, &kB)
			return kB, err
		}
	}
	return 0, fmt.Errorf("process %d has no Pss", pid)
}
