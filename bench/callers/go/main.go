// Command callers is many goroutines that ask at the same time, each for one key after the other, by go-redis or rueidis. For each line
// of standard input, a number of seconds, they ask for so long; the answer is a line of JSON. `cargo x bench callers` starts it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

const valueBytes = 132

var ctx = context.Background()

// client is what callers share.
type client interface {
	get(key string) (int, error)
	set(key, value string) error
}

type goRedis struct{ *redis.Client }

func (c goRedis) get(key string) (int, error) {
	value, err := c.Client.Get(ctx, key).Bytes()
	return len(value), err
}

func (c goRedis) set(key, value string) error { return c.Client.Set(ctx, key, value, 0).Err() }

type rueidisClient struct{ rueidis.Client }

func (c rueidisClient) get(key string) (int, error) {
	value, err := c.Do(ctx, c.B().Get().Key(key).Build()).AsBytes()
	return len(value), err
}

func (c rueidisClient) set(key, value string) error {
	return c.Do(ctx, c.B().Set().Key(key).Value(value).Build()).Error()
}

func open(name, address string, count int) (client, error) {
	switch name {
	case "go-redis":
		return goRedis{redis.NewClient(&redis.Options{Addr: address, PoolSize: count})}, nil
	case "rueidis":
		// What asks at the same time shares connections; nothing is kept on this side.
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true})
		return rueidisClient{c}, err
	}
	return nil, fmt.Errorf("there is no client %q", name)
}

// told is what is said of a slice.
type told struct {
	Operations uint64  `json:"operations"`
	Seconds    float64 `json:"seconds"`
	CPUUs      float64 `json:"cpu_us"`
	Errors     uint64  `json:"errors"`
	Example    *string `json:"example"`
}

// crowd asks until `over` is set.
type crowd struct {
	client    client
	operation string
	keys      uint64
	over      atomic.Bool
	done      atomic.Uint64
	errors    atomic.Uint64
	example   atomic.Pointer[string]
}

// caller asks for the same keys in the same order as those of the other programs (xorshift64*, Vigna 2016).
func (c *crowd) caller(number int) {
	state := (uint64(number) + 1) * 0x9e3779b97f4a7c15
	value := string(make([]byte, valueBytes))
	var done, errors uint64
	for !c.over.Load() {
		state ^= state >> 12
		state ^= state << 25
		state ^= state >> 27
		key := fmt.Sprintf("key:%011d", (state*0x2545f4914f6cdd1d>>16)%c.keys)
		if err := c.ask(key, value); err != nil {
			errors++
			text := err.Error()
			c.example.Store(&text)
		} else {
			done++
		}
	}
	c.done.Add(done)
	c.errors.Add(errors)
}

func (c *crowd) ask(key, value string) error {
	if c.operation == "set" {
		return c.client.set(key, value)
	}
	length, err := c.client.get(key)
	if err == nil && length != valueBytes {
		err = fmt.Errorf("a value has %d bytes instead of %d", length, valueBytes)
	}
	return err
}

func (c *crowd) askFor(count int, seconds float64) told {
	cpu, began := cpuUs(), time.Now()
	var callers sync.WaitGroup
	for number := range count {
		callers.Add(1)
		go func() {
			defer callers.Done()
			c.caller(number)
		}()
	}
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	c.over.Store(true)
	callers.Wait()
	return told{c.done.Load(), time.Since(began).Seconds(), cpuUs() - cpu, c.errors.Load(), c.example.Load()}
}

// cpuUs is what this process used so far.
func cpuUs() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e3
}

func main() {
	name := os.Args[1]
	flags := flag.NewFlagSet("callers", flag.ExitOnError)
	callers := flags.String("callers", "tasks", "what callers are: goroutines, whatever is said")
	count := flags.Int("count", 64, "how many")
	operation := flags.String("operation", "get", "get or set")
	port := flags.Int("port", 6379, "the server's port")
	keys := flags.Uint64("keys", 1, "keys that are there")
	if err := flags.Parse(os.Args[2:]); err != nil || *callers != "tasks" {
		fmt.Fprintln(os.Stderr, "goroutines are tasks", err)
		os.Exit(2)
	}
	client, err := open(name, fmt.Sprintf("127.0.0.1:%d", *port), *count)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		seconds, err := strconv.ParseFloat(lines.Text(), 64)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		c := &crowd{client: client, operation: *operation, keys: *keys}
		if err := json.NewEncoder(os.Stdout).Encode(c.askFor(*count, seconds)); err != nil {
			os.Exit(1)
		}
	}
}
