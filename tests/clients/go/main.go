// Command client runs go-redis as a plain and as a cluster client: the script every client test follows.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

// checks counts and names what held and what did not.
type checks struct{ passed, failed atomic.Int64 }

func (c *checks) equal(what string, actual, expected any) {
	if reflect.DeepEqual(actual, expected) {
		c.passed.Add(1)
		return
	}
	c.failed.Add(1)
	fmt.Printf("FAILED %s: expected %v, got %v\n", what, expected, actual)
}

func tag() string {
	bytes := make([]byte, 8)
	if _, err := rand.Read(bytes); err != nil {
		panic(err)
	}
	return hex.EncodeToString(bytes)
}

// script is what plain and cluster clients have in common; key makes names in one slot.
func script(c *checks, name string, client redis.UniversalClient, key func(string) string) {
	c.equal(name+" ping", client.Ping(ctx).Val(), "PONG")
	c.equal(name+" set", client.Set(ctx, key("s"), "a\r\nb", 0).Val(), "OK")
	c.equal(name+" get", client.Get(ctx, key("s")).Val(), "a\r\nb")
	c.equal(name+" missing", client.Get(ctx, key("none")).Err(), redis.Nil)
	c.equal(name+" append", client.Append(ctx, key("s"), "c").Val(), int64(5))
	c.equal(name+" incr", client.IncrBy(ctx, key("n"), 42).Val(), int64(42))
	c.equal(name+" rpush", client.RPush(ctx, key("l"), "a", "b", "c").Val(), int64(3))
	c.equal(name+" lrange", client.LRange(ctx, key("l"), 0, -1).Val(), []string{"a", "b", "c"})
	c.equal(name+" blpop", client.BLPop(ctx, time.Second, key("l")).Val(), []string{key("l"), "a"})
	c.equal(name+" expire", client.Expire(ctx, key("s"), 1000*time.Second).Val(), true)
	ttl := client.TTL(ctx, key("s")).Val()
	c.equal(name+" ttl", ttl > 990*time.Second && ttl <= 1000*time.Second, true)
	c.equal(name+" mset", client.MSet(ctx, key("a"), "1", key("b"), "2").Val(), "OK")
	c.equal(name+" mget", client.MGet(ctx, key("a"), key("none"), key("b")).Val(), []any{"1", nil, "2"})
	err := client.Incr(ctx, key("l")).Err()
	c.equal(name+" wrong type", err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE"), true)
	commands, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := range 100 {
			pipe.Set(ctx, key(fmt.Sprint("p", i)), i, 0)
		}
		return nil
	})
	c.equal(name+" pipeline", []any{len(commands), err}, []any{100, nil})
	err = client.Watch(ctx, func(tx *redis.Tx) error {
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, key("w"), 1, 0)
			pipe.Incr(ctx, key("w"))
			return nil
		})
		return err
	}, key("w"))
	c.equal(name+" exec", []any{err, client.Get(ctx, key("w")).Val()}, []any{nil, "2"})
	err = client.Watch(ctx, func(tx *redis.Tx) error {
		client.Set(ctx, key("w"), "changed elsewhere", 0)
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, key("w"), "lost", 0)
			return nil
		})
		return err
	}, key("w"))
	c.equal(name+" watch", errors.Is(err, redis.TxFailedErr), true)
	c.equal(name+" delete", client.Del(ctx, key("a"), key("b"), key("none")).Val(), int64(2))
}

func plain(c *checks, name string, options *redis.Options) {
	client := redis.NewClient(options)
	defer client.Close()
	prefix := tag()
	script(c, name, client, func(part string) string { return prefix + ":" + part })
	found := map[string]bool{}
	iterator := client.Scan(ctx, 0, prefix+":p*", 7).Iterator()
	for iterator.Next(ctx) {
		found[iterator.Val()] = true
	}
	c.equal(name+" scan", len(found), 100)
}

func cluster(c *checks, name string, options *redis.ClusterOptions) {
	client := redis.NewClusterClient(options)
	defer client.Close()
	prefix := tag()
	script(c, name, client, func(part string) string { return "{" + prefix + "}" + part })
	wrong := 0
	for i := range 500 {
		key := fmt.Sprintf("%s:%d", prefix, i)
		if client.Set(ctx, key, i, 0).Err() != nil || client.Get(ctx, key).Val() != fmt.Sprint(i) {
			wrong++
		}
	}
	c.equal(name+" routing over 500 keys", wrong, 0)
	var found atomic.Int64
	err := client.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		iterator := node.Scan(ctx, 0, prefix+":*", 50).Iterator()
		for iterator.Next(ctx) {
			found.Add(1)
		}
		return iterator.Err()
	})
	c.equal(name+" scan over all nodes", []any{err, found.Load()}, []any{nil, int64(500)})
}

func main() {
	host, plainPort, clusterPort := os.Args[1], os.Args[2], os.Args[3]
	c := &checks{}
	for protocol := 2; protocol <= 3; protocol++ {
		plain(c, fmt.Sprint("go-redis RESP", protocol), &redis.Options{Addr: host + ":" + plainPort, Protocol: protocol})
		cluster(c, fmt.Sprint("go-redis cluster RESP", protocol),
			&redis.ClusterOptions{Addrs: []string{host + ":" + clusterPort}, Protocol: protocol})
	}
	fmt.Printf("%d passed, %d failed\n", c.passed.Load(), c.failed.Load())
	if c.failed.Load() > 0 {
		os.Exit(1)
	}
}
