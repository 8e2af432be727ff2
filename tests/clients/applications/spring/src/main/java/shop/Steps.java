package shop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.springframework.cache.Cache;
import org.springframework.cache.CacheManager;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.stereotype.Component;

/** What is tried before users come. */
@Component
public class Steps {
    private static final int THREADS = 8;
    private static final int ROUNDS = 50;

    private final Counts counts;
    private final CacheManager caches;
    private final StringRedisTemplate redis;

    Steps(Counts counts, CacheManager caches, StringRedisTemplate redis) {
        this.counts = counts;
        this.caches = caches;
        this.redis = redis;
    }

    void all() {
        equal("the manager of caches", caches instanceof RedisCacheManager, true);
        ofAnnotations();
        ofCache();
        ofThreads();
        caches.getCacheNames().forEach(name -> caches.getCache(name).clear());
        equal("nothing is left", redis.keys("shop:*").size(), 0);
    }

    private void ofAnnotations() {
        int before = counts.lookups();
        equal("Cacheable of nothing", list(counts.of("ann"), counts.of("ann"), counts.lookups() - before), list(null, null, 2));
        equal("CachePut", list(counts.begin("ann"), counts.raise("ann"), counts.raise("ann")), list(0, 1, 2));
        equal("Cacheable", list(counts.of("ann"), counts.of("ann"), counts.lookups() - before), list(2, 2, 2));
        Long lasts = redis.getExpire("shop:counts::ann");
        equal("lasts for ten minutes", lasts > 500 && lasts <= Duration.ofMinutes(10).toSeconds(), true);
        counts.begin("bob");
        counts.forget("ann");
        equal("CacheEvict", list(counts.of("ann"), counts.of("bob"), counts.lookups() - before), list(null, 0, 3));
        counts.forgetWhatIsCached();
        equal("CacheEvict of all", list(counts.of("bob"), counts.of("bob"), counts.lookups() - before), list(0, 0, 4));
        counts.forget("bob");
    }

    private void ofCache() {
        Cache cache = caches.getCache("prices");
        String text = "ä\r\n\0".repeat(20_000);
        cache.put("long", text);
        equal("a long value", text.equals(cache.get("long", String.class)), true);
        equal("putIfAbsent", list(cache.putIfAbsent("a", 1), cache.putIfAbsent("a", 2).get(), cache.get("a").get()), list(null, 1, 1));
        equal("evictIfPresent", list(cache.evictIfPresent("a"), cache.evictIfPresent("a"), cache.get("a")), list(true, false, null));
        equal("get with a loader", list(cache.get("b", () -> 3), cache.get("b", () -> 4)), list(3, 3));
        IntStream.range(0, 500).forEach(i -> cache.put("many" + i, i));
        caches.getCache("counts").put("kept", 1);
        equal("many", IntStream.range(0, 500).allMatch(i -> Objects.equals(cache.get("many" + i).get(), i)), true);
        equal("invalidate", list(cache.invalidate(), redis.keys("shop:prices::*").size()), list(true, 0));
        equal("another cache", caches.getCache("counts").get("kept").get(), 1);
    }

    /** Each thread has keys of its own; all want the same value. */
    private void ofThreads() {
        Cache cache = caches.getCache("prices");
        List<Callable<Integer>> tasks = new ArrayList<>();
        for (int thread = 0; thread < THREADS; thread += 1) {
            String mine = "of-" + thread;
            tasks.add(() -> {
                int wrong = 0;
                for (int round = 0; round < ROUNDS; round += 1) {
                    cache.put(mine, mine + round);
                    wrong += (mine + round).equals(cache.get(mine, String.class)) ? 0 : 1;
                }
                return wrong + (counts.together("bread").equals("looked up bread") ? 0 : 1);
            });
        }
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        try {
            int wrong = 0;
            for (Future<Integer> future : threads.invokeAll(tasks)) {
                wrong += future.get();
            }
            equal("threads hear their own", wrong, 0);
        } catch (Exception error) {
            equal("threads", error.toString(), "no error");
        } finally {
            threads.shutdownNow();
        }
    }

    private static List<Object> list(Object... values) {
        var list = new ArrayList<Object>();
        for (Object value : values) {
            list.add(value instanceof Cache.ValueWrapper wrapper ? wrapper.get() : value);
        }
        return list;
    }

    private static void equal(String what, Object actual, Object expected) {
        boolean isSo = Objects.equals(actual, expected);
        System.out.println((isSo ? "ok " : "FAILED ") + what + ": " + actual + (isSo ? "" : ", expected " + expected));
    }
}
