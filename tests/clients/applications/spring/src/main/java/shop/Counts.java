package shop;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.cache.annotation.CacheEvict;
import org.springframework.cache.annotation.CachePut;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.stereotype.Service;

/** What has to be looked up slowly, here in a map, and is cached. */
@Service
public class Counts {
    private final Map<String, Integer> counts = new ConcurrentHashMap<>();
    /** How often something was looked up and not found in the cache. */
    private final AtomicInteger lookups = new AtomicInteger();

    public int lookups() {
        return lookups.get();
    }

    @Cacheable(cacheNames = "counts", key = "#user", unless = "#result == null")
    public Integer of(String user) {
        lookups.incrementAndGet();
        return counts.get(user);
    }

    @CachePut(cacheNames = "counts", key = "#user")
    public Integer begin(String user) {
        counts.put(user, 0);
        return 0;
    }

    @CachePut(cacheNames = "counts", key = "#user", unless = "#result == null")
    public Integer raise(String user) {
        return counts.computeIfPresent(user, (name, count) -> count + 1);
    }

    @CacheEvict(cacheNames = "counts", key = "#user")
    public void forget(String user) {
        counts.remove(user);
    }

    @CacheEvict(cacheNames = "counts", allEntries = true)
    public void forgetWhatIsCached() {}

    @Cacheable(cacheNames = "together", key = "#name")
    public String together(String name) {
        return "looked up " + name;
    }
}
