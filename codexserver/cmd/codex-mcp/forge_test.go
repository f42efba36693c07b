package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// forgerOf is the variable that makes this program the command of a socket attack. It names the
// folder of the command's reports.
const forgerOf = "CODEX_MCP_TEST_FORGER"

// forge listens at the socket of a name in each of the folders, as the shared server would, and
// writes down what clients say.
func forge(report, name string, folders []string) error {
	said, err := os.OpenFile(filepath.Join(report, "said"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	own, err := identityOf()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		_ = os.MkdirAll(folder, 0o700)
		if os.Chdir(folder) != nil { // the path may be too long for a socket
			continue
		}
		_ = os.WriteFile(name+".pid", []byte(own), 0o600)
		_ = os.Remove(name + ".sock")
		l, err := net.Listen("unix", name+".sock")
		if err != nil {
			continue // it is held
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				fmt.Fprintf(c, `{"server":"codex-mcp","frame":1,"version":"dev","pid":%d}`+"\n", os.Getpid())
				_ = c.SetReadDeadline(time.Now().Add(time.Second))
				_, _ = io.Copy(said, c)
				c.Close()
			}
		}()
	}
	if err := os.WriteFile(filepath.Join(report, "ready"), nil, 0o600); err != nil {
		return err
	}
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if _, err := os.Stat(filepath.Join(report, "stop")); err == nil {
			return nil
		}
		<-time.After(5 * time.Millisecond)
	}
	return nil
}

// identityOf returns what the file of a shared server says about its process, about this one.
func identityOf() (string, error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return "", err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return fmt.Sprintf("%d %s %s", os.Getpid(), fields[19], bytes.TrimSpace(boot)), nil
}

// thiefOf is the variable that makes this program a command that asks for a link to the page. It
// names the file of its report.
const thiefOf = "CODEX_MCP_TEST_THIEF"

// steal asks for a link at every socket of a folder, and reports what it is told. With orphan it
// waits until its parent, a shell, has ended.
func steal(report, folder string, orphan bool) error {
	shell := func() bool {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", os.Getppid()))
		return slices.Contains([]string{"sh", "dash", "bash", "env", "setsid"}, strings.TrimSpace(string(name)))
	}
	for end := time.Now().Add(limit); orphan && shell() && time.Now().Before(end); {
		<-time.After(time.Millisecond)
	}
	sockets, err := filepath.Glob(filepath.Join(folder, "*.sock"))
	var said strings.Builder
	fmt.Fprintf(&said, "%d sockets, %v\n", len(sockets), err)
	for _, path := range sockets {
		said.WriteString(demand(path))
	}
	if err := os.WriteFile(report+".new", []byte(said.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(report+".new", report)
}

func demand(path string) string {
	c, err := net.Dial("unix", path)
	if err != nil {
		return fmt.Sprintln("refused by the system:", err)
	}
	defer c.Close()
	fmt.Fprintln(c, `{"want":"link"}`)
	_ = c.SetReadDeadline(time.Now().Add(limit))
	lines, text := bufio.NewReader(c), ""
	for {
		line, err := lines.ReadString('\n')
		if text += line; err != nil {
			return text + "\n"
		}
	}
}
