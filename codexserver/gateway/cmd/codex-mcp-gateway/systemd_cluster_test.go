//go:build cluster

package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

var (
	baseFolder = flag.String("base", "", "a `folder` with Debian 12, which .ci/run machines makes")
	watchTime  = flag.Duration("watch", time.Minute, "how long the machines are watched after the page")
)

// booted are three machines with Debian 12, each with a systemd, a network and files of its own. systemd-nspawn
// boots them.
type booted struct {
	*page
	top       string
	modelPort int
	inits     map[int]string // the process of each machine's systemd
}

// TestBooted runs every command of codexserver/gateway/README.md on machines with systemd. Then it
// watches them.
func TestBooted(t *testing.T) {
	if *baseFolder == "" {
		leaveOut(t, "without -base")
	}
	if os.Geteuid() != 0 {
		leaveOut(t, "only root can boot machines")
	}
	inNamespaces(t, syscall.CLONE_NEWPID, func(t *testing.T) { // so that no machine outlives the test
		o := newBooted(t)
		o.follow(o.prepare)
		o.restored()
		o.hardened()
		o.watchdogs()
		o.fullDisk()
		o.quiet()
		o.strangers()
		o.limits()
	})
}

// newBooted boots the machines.
func newBooted(t *testing.T) *booted {
	t.Helper()
	o := &booted{top: t.TempDir(), inits: map[int]string{}}
	o.page = &page{t: t, substitutions: o.differences, used: map[string]bool{}, shells: map[int]*shell{}}
	for target, kind := range map[string]string{"/proc": "proc", o.top: "tmpfs"} {
		if err := syscall.Mount(kind, target, kind, 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // before the folder is removed; the machines have ended
		if err := syscall.Unmount(o.top, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	model := providertest.New(fileModel())
	served := &httptest.Server{Listener: l, Config: &http.Server{Handler: model}}
	served.Start()
	t.Cleanup(model.Close)
	t.Cleanup(served.Close)
	o.modelPort = l.Addr().(*net.TCPAddr).Port
	for n := 1; n <= natsServers; n++ {
		o.boot(n)
	}
	// Root of machine 1 may log in everywhere.
	key := o.run(1, `mkdir -m 0700 -p ~/.ssh
		ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519
		echo 'StrictHostKeyChecking accept-new' >~/.ssh/config
		cat ~/.ssh/id_ed25519.pub`)
	for n := 1; n <= natsServers; n++ {
		o.run(n, "mkdir -m 0700 -p ~/.ssh\necho '"+strings.TrimSpace(key)+"' >~/.ssh/authorized_keys")
	}
	return o
}

// boot boots a machine, and starts its shell.
func (o *booted) boot(n int) {
	o.t.Helper()
	name := "m" + strconv.Itoa(n)
	at := func(name string) string { return filepath.Join(o.top, "m"+strconv.Itoa(n), name) }
	for _, dir := range []string{at("upper"), at("work"), at("root"), filepath.Join(o.top, "team")} { // the last one is the file system that all share
		if err := os.MkdirAll(dir, 0o755); err != nil {
			o.t.Fatal(err)
		}
	}
	if err := syscall.Mount("overlay", at("root"), "overlay", 0, "lowerdir="+*baseFolder+",upperdir="+at("upper")+",workdir="+at("work")); err != nil {
		leaveOut(o.t, "no overlay: "+err.Error())
	}
	o.t.Cleanup(func() { _ = syscall.Unmount(at("root"), syscall.MNT_DETACH) }) // it ends with the test anyway
	network := newNetwork(o.t)
	newCable(o.t, network, natsNetwork, n, 0)
	mustRun(o.t, enter(o.t, network, ipProgram(), "route", "add", "default", "via", addressAt(natsNetwork, n, false)))
	hosts := "127.0.0.1 localhost\n" + addressAt(natsNetwork, 1, true) + " codex.example.com\n"
	for m := 1; m <= natsServers; m++ {
		hosts += fmt.Sprintf("%s m%d.example.com\n", addressAt(natsNetwork, m, true), m)
	}
	for file, text := range map[string]string{"etc/hosts": hosts, "etc/hostname": name + "\n"} {
		if err := os.WriteFile(filepath.Join(at("root"), file), []byte(text), 0o755); err != nil {
			o.t.Fatal(err)
		}
	}
	args := []string{"-D", at("root"), "-M", name, "-b", "-q", "--register=no", "--network-namespace-path=/proc/" + network + "/ns/net", "--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=pipe",
		"--bind=" + filepath.Join(o.top, "team") + ":/srv/codex/team", "--tmpfs=/var/lib/nats:size=256m", "--bind-ro=" + o.checkout(), "--bind-ro=" + goEnv(o.t, "GOROOT"), "--bind-ro=" + goEnv(o.t, "GOMODCACHE") + ":/mnt", "--bind=" + goEnv(o.t, "GOCACHE") + ":/media"}
	argv := append([]string{"systemd-nspawn"}, args...)
	if _, err := os.Stat("/run/systemd/system"); err != nil { // otherwise the system's own systemd makes a cgroup
		argv = append(append([]string{"sh", "-ec", inCgroup, o.cgroup(name)}, argv...), "--keep-unit")
	}
	p := launch(o.t, folders{cwd: o.top}, exec.Command(argv[0], argv[1:]...))
	until(o.t, name+" does not boot", func() bool {
		select {
		case <-p.exited:
			leaveOut(o.t, "systemd-nspawn: "+p.errors())
		default:
		}
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", p.cmd.Process.Pid)) // "" before there is one
		o.inits[n] = strings.TrimSpace(string(children))
		state, _ := o.inside(n, "systemctl", "is-system-running").Output() // fails before systemd answers
		return strings.TrimSpace(string(state)) == "running"
	})
	init, err := strconv.Atoi(o.inits[n])
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = syscall.Kill(init, syscall.SIGKILL) }) // systemd-nspawn ends then
	cmd := o.inside(n, "bash", "-e")
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + filepath.Join(goEnv(o.t, "GOROOT"), "bin"), "HOME=/root", "TERM=xterm", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
		"GOCACHE=/media", "GOPROXY=file:///mnt/cache/download", "GOSUMDB=off", "GOFLAGS=-trimpath -buildvcs=false", "GOTOOLCHAIN=local",
		"CURL_CA_BUNDLE=/etc/haproxy/codex-mcp.pem", "SSL_CERT_FILE=/etc/haproxy/codex-mcp.pem",
	}
	o.shells[n] = o.newShell(cmd)
}

// inCgroup runs a command in the cgroups whose folders are the lines of $0.
const inCgroup = `for dir in $0; do
	mkdir -p $dir
	for file in cpuset.cpus cpuset.mems; do if [ -e $dir/$file ]; then cat $dir/../$file >$dir/$file; fi; done
	echo $$ >$dir/cgroup.procs
done
exec "$@"`

// cgroup returns the folders of a new cgroup in all hierarchies of this system. They are removed at the end of the test.
func (o *booted) cgroup(name string) string {
	o.t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		o.t.Fatal(err)
	}
	var dirs []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); strings.Contains(line, " - cgroup") {
			dirs = append(dirs, filepath.Join(fields[4], "codex-mcp-test-"+name))
		}
	}
	o.t.Cleanup(func() {
		for _, dir := range dirs {
			until(o.t, dir+" is not empty", func() bool {
				_ = exec.Command("find", dir, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Run() // looked at below
				_, err := os.Stat(dir)
				return os.IsNotExist(err)
			})
		}
	})
	return strings.Join(dirs, "\n")
}

// leaveOut skips the test. In CI it fails, because a test that is skipped looks like one that passed.
func leaveOut(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal("not run: " + reason)
	}
	t.Skip("not run: " + reason)
}

// inside returns a command on a machine.
func (o *booted) inside(n int, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", o.inits[n], "-a", "--wdns=/root", "--"}, args...)...)
}

// The page's backup is made here while a turn runs. Its leases are older than its users: meanwhile others came and
// went, and ann got another node.
const (
	backup     = "nats backup account --force /var/backups/codex-mcp\n"
	lateBackup = `nats stream backup KV_codexmcp_leases ~/leases
nats pub '$KV.codexmcp_leases.others' x --count 1000
ssh -n $(codex-mcp-gateway status | awk '$1 == "ann" { print $2 }').example.com systemctl restart codex-mcp@team
until thread=$(begin 'make the file three') && [ $thread ]; do sleep 1; done
` + backup + `rm -r /var/backups/codex-mcp/KV_codexmcp_leases && mv ~/leases /var/backups/codex-mcp/KV_codexmcp_leases
`
)

// differences returns the [page.substitutions]: these machines differ little from those of the page.
func (o *booted) differences(machine int) []string {
	model := "OPENAI_BASE_URL=http://" + addressAt(natsNetwork, machine, false) + ":" + strconv.Itoa(o.modelPort) + "/v1"
	return []string{
		// The repository is not published, so take this one.
		"git clone https://github.com/codexmcp/codexmcp && cd codexmcp", "cd '" + o.checkout() + "'",
		"export N=1 ", "export N=" + strconv.Itoa(machine) + " ",
		`sk-…\n`, `sk-x\n` + model + `\nCODEX_BIN=/no/codex\n`,
		"sk-…", "sk-x " + model + " CODEX_BIN=/no/codex",
		backup, lateBackup,
	}
}

// prepare makes what the page says in words, before the block that needs it.
func (o *booted) prepare(block string) {
	o.t.Helper()
	units := o.fenced("ini")
	switch {
	case strings.Contains(block, "instance() {"):
		for n := 1; n <= natsServers; n++ {
			o.write(n, "/etc/systemd/system/codex-mcp@.service", units[0])
			o.write(n, "/etc/systemd/system/codex-mcp@.service.d/gateway.conf", units[1])
		}
	case strings.Contains(block, "systemctl restart haproxy"):
		o.write(1, "/etc/haproxy/haproxy.cfg", o.fenced("haproxy")[0])
		o.run(1, `(cd /etc/haproxy && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=codex.example.com \
			-addext subjectAltName=DNS:codex.example.com -keyout key.pem -out cert.pem && cat cert.pem key.pem >codex-mcp.pem)`)
	}
}

// write writes a file of a machine.
func (o *booted) write(n int, file, text string) {
	o.t.Helper()
	cmd := o.inside(n, "sh", "-ec", `mkdir -p "$(dirname "$0")" && cat >"$0"`, file)
	cmd.Stdin = strings.NewReader(text)
	mustRun(o.t, cmd)
}

// unitsOf returns the units of the page that have a process on a machine.
func unitsOf(n int) []string {
	units := []string{"nats", "codex-mcp@team"}
	if n == 1 {
		units = append(units, "codex-mcp@front1", "codex-mcp@front2")
	}
	return units
}

// restored checks that a turn goes on that ran while the backup was made.
func (o *booted) restored() {
	o.t.Helper()
	if output := o.turn(`$thread`); !strings.Contains(output, "\nthree\n") {
		o.t.Errorf("the turn of the backup prints %s", output)
	}
}

// hardening finds the settings of a unit whose value systemctl shows as it is written.
var hardening = regexp.MustCompile(`(?m)^((?:NoNew|Protect|Private|Lock|RestrictRealtime|RestrictSUID)\w*)=(\w+)$`)

// hardened checks that the processes of the gateway are confined as their unit says.
func (o *booted) hardened() {
	o.t.Helper()
	settings := hardening.FindAllStringSubmatch(o.fenced("ini")[0], -1)
	if len(settings) < 10 {
		o.t.Fatalf("the unit has only %d settings", len(settings))
	}
	for n := 1; n <= natsServers; n++ {
		for _, unit := range unitsOf(n)[1:] {
			for _, s := range settings {
				if got := strings.TrimSpace(o.run(n, "systemctl show --value -p "+s[1]+" "+unit)); got != s[2] {
					o.t.Errorf("machine %d: %s: %s is %q, and not %q", n, unit, s[1], got, s[2])
				}
			}
			output := o.run(n, `pid=$(systemctl show --value -p MainPID `+unit+`)
				grep -E '^(NoNewPrivs|CapBnd|CapEff|Seccomp):' /proc/$pid/status
				for dir in / /usr /etc /home /root /var/lib/nats /sys/fs/cgroup /proc/sys/kernel /srv/codex/* /var/lib/codex-mcp/* /tmp; do
					! nsenter -t $pid -m test -w $dir || echo $dir can be written
				done`)
			instance := strings.TrimPrefix(unit, "codex-mcp@")
			want := "CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 /srv/codex/" + instance + " can be written /var/lib/codex-mcp/" + instance + " can be written /tmp can be written"
			if got := strings.Join(strings.Fields(output), " "); got != want {
				o.t.Errorf("machine %d: %s:\n%s\nand not\n%s", n, unit, got, want)
			}
		}
	}
}

// watchdogs stops processes that systemd and the watchdog of the page restart.
func (o *booted) watchdogs() {
	o.t.Helper()
	for unit, health := range map[string]string{"nats": "http://127.0.0.1:8222/healthz", "codex-mcp@team": "http://127.0.0.1:4519/readyz"} {
		o.run(2, `old=$(systemctl show --value -p MainPID `+unit+`)
			kill -STOP $old
			until [ $(systemctl show --value -p MainPID `+unit+`) != $old ] && curl -fsS `+health+`; do sleep 1; done`)
	}
}

// fullDisk fills the disk of a NATS server, which turns JetStream off. When there is room again, nobody restarts it
// but the watchdog.
func (o *booted) fullDisk() {
	o.t.Helper()
	const enabled, pid = "curl -fsS 'http://127.0.0.1:8222/healthz?js-enabled-only=true'", "systemctl show --value -p MainPID nats"
	before := o.run(3, pid)
	o.run(3, "dd if=/dev/zero of=/var/lib/nats/full bs=1M || true\nwhile "+enabled+"; do sleep 1; done")
	<-time.After(90 * time.Second)
	if after := o.run(3, pid); after != before {
		o.t.Errorf("the watchdog has restarted a server with a full disk: process %s instead of %s", after, before)
	}
	o.run(3, "rm /var/lib/nats/full; until "+enabled+"; do sleep 1; done; until curl -fsS http://127.0.0.1:8222/healthz; do sleep 1; done")
}

// strangers checks that the journals show what TLS refuses: then they also show what should not be refused.
func (o *booted) strangers() {
	o.t.Helper()
	for port, unit := range map[string]string{"4222": "nats", "4520": "codex-mcp@team"} {
		journal := "journalctl --no-pager -o cat -u " + unit
		before := len(complaint.FindAllString(o.run(1, journal), -1))
		o.run(1, "curl -ksS https://m1.example.com:"+port+" || true")
		until(o.t, unit+" does not say that a stranger is refused", func() bool { return len(complaint.FindAllString(o.run(1, journal), -1)) > before })
	}
}

// turn approves what the turn of a thread asks, and returns what is printed, with the files that there are then. The thread
// is a word of the shell.
func (o *booted) turn(thread string) string {
	o.t.Helper()
	return o.run(1, "accept "+thread+"\nls /srv/codex/team/ann")
}

// complaint is a line of a log about a connection that TLS refuses.
var complaint = regexp.MustCompile(`(?i)x509|handshake|tls.*(error|fail)|bad certificate|unknown authority`)

// quiet watches the machines while a user works, and then reads their journals: TLS has no error, and nothing ends.
func (o *booted) quiet() {
	o.t.Helper()
	state := func(n int) string {
		return o.run(n, "systemctl show -p NRestarts -p MainPID "+strings.Join(unitsOf(n), " "))
	}
	before := map[int]string{}
	since := map[int]string{}
	for n := 1; n <= natsServers; n++ {
		before[n], since[n] = state(n), strings.TrimSpace(o.run(n, "date +%s"))
	}
	turns := 0
	for end := time.Now().Add(*watchTime); time.Now().Before(end); turns++ {
		name := "watched" + strconv.Itoa(turns)
		if output := o.turn(`$(begin 'make the file ` + name + `')`); !strings.Contains(output, "completed") || !strings.Contains(output, "\n"+name+"\n") {
			o.t.Errorf("a turn prints %s", output)
		}
		<-time.After(30 * time.Second)
	}
	calls := 0
	for n := 1; n <= natsServers; n++ {
		journal := o.run(n, "journalctl --no-pager -o cat --since @"+since[n])
		for line := range strings.Lines(journal) {
			if complaint.MatchString(line) {
				o.t.Errorf("machine %d: %s", n, line)
			}
			if strings.Contains(line, `"tool":"codex"`) {
				calls++
			}
		}
		if after := state(n); after != before[n] {
			o.t.Errorf("machine %d: the units were\n%s\nand are\n%s", n, before[n], after)
		}
		if failed := o.run(n, "systemctl --failed --plain --no-legend"); failed != "" {
			o.t.Errorf("machine %d: these units have failed:\n%s", n, failed)
		}
	}
	if calls < turns || turns == 0 {
		o.t.Errorf("the journals have %d calls of %d turns", calls, turns)
	}
	o.t.Logf("%d turns in %v", turns, *watchTime)
}

// limits bounds the worker of a user, as docs/operate/operating.md says.
func (o *booted) limits() {
	o.t.Helper()
	const controllers = "/sys/fs/cgroup/cgroup.controllers"
	if got := o.run(3, "cat "+controllers+" || true"); !strings.Contains(got, "memory") || !strings.Contains(got, "pids") {
		o.t.Logf("not run: the limits of a worker, without cgroup v2: %s: %s", controllers, got)
		return
	}
	o.write(3, "/etc/systemd/system/codex-mcp@team.service.d/limits.conf", o.fenced("ini")[2])
	o.write(3, "/root/limits.toml", regexp.MustCompile(`(?s)\[worker\].*`).FindString(o.fenced("toml")[0]))
	o.run(3, `cat ~/limits.toml >>/var/lib/codex-mcp/team/codex-mcp-gateway.toml
		systemctl daemon-reload
		systemctl restart codex-mcp@team
		until curl -fsS http://127.0.0.1:4519/readyz; do sleep 1; done`)
}
