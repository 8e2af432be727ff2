// jedis and lettuce as plain and as cluster clients: the script every client test follows.

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.sync.RedisClusterCommands;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.function.UnaryOperator;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;

/** Connects as plain client to one port and as cluster client to another, and counts what held. */
public final class Client {
  private static int passed;
  private static int failed;

  private interface Script {
    void run() throws Exception;
  }

  private static void equal(String what, Object actual, Object expected) {
    if (Objects.equals(actual, expected)) {
      passed++;
    } else {
      failed++;
      System.out.printf("FAILED %s: expected %s, got %s%n", what, expected, actual);
    }
  }

  private static void run(String name, Script script) {
    try {
      script.run();
    } catch (Exception error) {
      failed++;
      System.out.printf("FAILED %s: %s%n", name, error);
    }
  }

  private static void jedisScript(String name, UnifiedJedis client, UnaryOperator<String> key) {
    equal(name + " set", client.set(key.apply("s"), "a\r\nb"), "OK");
    equal(name + " get", client.get(key.apply("s")), "a\r\nb");
    equal(name + " append", client.append(key.apply("s"), "c"), 5L);
    equal(name + " incr", client.incrBy(key.apply("n"), 42), 42L);
    equal(name + " rpush", client.rpush(key.apply("l"), "a", "b", "c"), 3L);
    equal(name + " lrange", client.lrange(key.apply("l"), 0, -1), List.of("a", "b", "c"));
    equal(name + " blpop", client.blpop(1, key.apply("l")), List.of(key.apply("l"), "a"));
    equal(name + " expire", client.expire(key.apply("s"), 1000), 1L);
    long ttl = client.ttl(key.apply("s"));
    equal(name + " ttl", ttl > 990 && ttl <= 1000, true);
    equal(name + " mset", client.mset(key.apply("a"), "1", key.apply("b"), "2"), "OK");
    List<String> values = client.mget(key.apply("a"), key.apply("none"), key.apply("b"));
    equal(name + " mget", values, Arrays.asList("1", null, "2"));
    try {
      client.incr(key.apply("l"));
      equal(name + " wrong type", false, true);
    } catch (JedisDataException error) {
      equal(name + " wrong type", error.getMessage().startsWith("WRONGTYPE"), true);
    }
    try (var pipeline = client.pipelined()) {
      List<Response<String>> replies = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        replies.add(pipeline.set(key.apply("p" + i), Integer.toString(i)));
      }
      pipeline.sync();
      equal(name + " pipeline", replies.stream().filter(reply -> reply.get().equals("OK")).count(), 100L);
    }
    equal(name + " delete", client.del(key.apply("a"), key.apply("b"), key.apply("none")), 2L);
  }

  private static void jedisPlain(String name, HostAndPort address, RedisProtocol protocol) {
    String tag = UUID.randomUUID().toString();
    var config = DefaultJedisClientConfig.builder().protocol(protocol).build();
    try (JedisPooled client = new JedisPooled(address, config)) {
      jedisScript(name, client, part -> tag + ":" + part);
      Set<String> found = new HashSet<>();
      String cursor = "0";
      do {
        var page = client.scan(cursor, new ScanParams().match(tag + ":p*").count(7));
        found.addAll(page.getResult());
        cursor = page.getCursor();
      } while (!cursor.equals("0"));
      equal(name + " scan", found.size(), 100);
    }
    try (Jedis one = new Jedis(address, config); Jedis other = new Jedis(address, config)) {
      var transaction = one.multi();
      transaction.set(tag + ":w", "1");
      transaction.incr(tag + ":w");
      equal(name + " exec", transaction.exec(), List.of("OK", 2L));
      one.watch(tag + ":w");
      other.set(tag + ":w", "changed elsewhere");
      var lost = one.multi();
      lost.set(tag + ":w", "lost");
      equal(name + " watch", lost.exec(), null);
      one.select(3);
      equal(name + " select", one.get(tag + ":w"), null);
    }
  }

  private static void jedisCluster(String name, HostAndPort address, RedisProtocol protocol) {
    String tag = UUID.randomUUID().toString();
    var config = DefaultJedisClientConfig.builder().protocol(protocol).build();
    try (JedisCluster client = new JedisCluster(Set.of(address), config)) {
      jedisScript(name, client, part -> "{" + tag + "}" + part);
      int wrong = 0;
      for (int i = 0; i < 500; i++) {
        client.set(tag + ":" + i, Integer.toString(i));
        if (!Integer.toString(i).equals(client.get(tag + ":" + i))) {
          wrong++;
        }
      }
      equal(name + " routing over 500 keys", wrong, 0);
    }
  }

  private static void lettuceScript(String name, RedisClusterCommands<String, String> client, UnaryOperator<String> key) {
    equal(name + " set", client.set(key.apply("s"), "a\r\nb"), "OK");
    equal(name + " get", client.get(key.apply("s")), "a\r\nb");
    equal(name + " append", client.append(key.apply("s"), "c"), 5L);
    equal(name + " incr", client.incrby(key.apply("n"), 42), 42L);
    equal(name + " rpush", client.rpush(key.apply("l"), "a", "b", "c"), 3L);
    equal(name + " lrange", client.lrange(key.apply("l"), 0, -1), List.of("a", "b", "c"));
    equal(name + " blpop", client.blpop(1, key.apply("l")).getValue(), "a");
    equal(name + " expire", client.expire(key.apply("s"), 1000), true);
    long ttl = client.ttl(key.apply("s"));
    equal(name + " ttl", ttl > 990 && ttl <= 1000, true);
    equal(name + " mset", client.mset(Map.of(key.apply("a"), "1", key.apply("b"), "2")), "OK");
    equal(name + " mget", client.mget(key.apply("a"), key.apply("none")).get(1).hasValue(), false);
    try {
      client.incr(key.apply("l"));
      equal(name + " wrong type", false, true);
    } catch (RedisCommandExecutionException error) {
      equal(name + " wrong type", error.getMessage().startsWith("WRONGTYPE"), true);
    }
    equal(name + " delete", client.del(key.apply("a"), key.apply("b"), key.apply("none")), 2L);
  }

  private static void lettucePlain(RedisURI uri) {
    String tag = UUID.randomUUID().toString();
    RedisClient client = RedisClient.create(uri);
    try (var connection = client.connect(); var other = client.connect()) {
      var commands = connection.sync();
      equal("lettuce ping", commands.ping(), "PONG");
      for (int i = 0; i < 100; i++) {
        commands.set(tag + ":p" + i, "x");
      }
      Set<String> found = new HashSet<>();
      ScanIterator.scan(commands, ScanArgs.Builder.limit(7).match(tag + ":p*")).forEachRemaining(found::add);
      equal("lettuce scan", found.size(), 100);
      commands.watch(tag + ":w");
      other.sync().set(tag + ":w", "changed elsewhere");
      commands.multi();
      commands.set(tag + ":w", "lost");
      equal("lettuce watch", commands.exec().wasDiscarded(), true);
      commands.multi();
      commands.incr(tag + ":n");
      equal("lettuce exec", commands.exec().get(0), 1L);
    } finally {
      client.shutdown();
    }
  }

  private static void lettuceCluster(RedisURI uri) {
    String tag = UUID.randomUUID().toString();
    RedisClusterClient client = RedisClusterClient.create(uri);
    try (var connection = client.connect()) {
      equal("lettuce cluster nodes", client.getPartitions().size() >= 1, true);
      lettuceScript("lettuce cluster", connection.sync(), part -> "{" + tag + "}" + part);
      int wrong = 0;
      for (int i = 0; i < 500; i++) {
        connection.sync().set(tag + ":" + i, Integer.toString(i));
        if (!Integer.toString(i).equals(connection.sync().get(tag + ":" + i))) {
          wrong++;
        }
      }
      equal("lettuce cluster routing over 500 keys", wrong, 0);
      long keys = connection.sync().keys(tag + ":*").size();
      equal("lettuce cluster keys over all nodes", keys, 500L);
    } finally {
      client.shutdown();
    }
  }

  /** Runs every script; arguments: host, port of the plain personality, port of the first cluster node. */
  public static void main(String[] arguments) {
    String host = arguments[0];
    var plain = new HostAndPort(host, Integer.parseInt(arguments[1]));
    var cluster = new HostAndPort(host, Integer.parseInt(arguments[2]));
    for (RedisProtocol protocol : RedisProtocol.values()) {
      run("jedis", () -> jedisPlain("jedis " + protocol, plain, protocol));
      run("jedis cluster", () -> jedisCluster("jedis cluster " + protocol, cluster, protocol));
    }
    run("lettuce", () -> lettucePlain(RedisURI.create(plain.getHost(), plain.getPort())));
    run("lettuce cluster", () -> lettuceCluster(RedisURI.create(cluster.getHost(), cluster.getPort())));
    System.out.printf("%d passed, %d failed%n", passed, failed);
    System.exit(failed > 0 ? 1 : 0);
  }
}
